"""Document 004 printed again from its own times, and Boda's notation of times and gradients."""

from __future__ import annotations

import csv
import re
from math import prod
from pathlib import Path

import pytest

from layerscope import Report, analyze
from layerscope.cli import run as command
from layerscope.errors import UnknownName, UsageError
from layerscope.notations.boda import si_text, write
from layerscope.report.given_run import Given, run_of, run_without_times
from layerscope.report.times_file import TimesFile
from tests.notations.test_notation_boda import document, mixed

Captured = pytest.CaptureFixture[str]
UNITS = {"ms": "e-3", "us": "e-6"}
RATE, SHARE, SUM, SUM_SHARE = "F/s", "time%", "cum_time", "cum_time%"
# Cells that printed times cannot give: their times have three digits, and the document was printed
# from unrounded ones. In the document, and from the printed times.
ROUNDED = {
    ("cccp7-1024", RATE): ("1.91TF/s", "1.92TF/s"),
    ("cccp8-1024", RATE): ("1.86TF/s", "1.87TF/s"),
    ("cccp3", SHARE): ("2.2%", "2.3%"),
    ("cccp8-1024_filts__inxp", SUM): ("7.06ms", "7.07ms"),
    ("conv3_filts__inxp", SUM): ("7.17ms", "7.18ms"),
    ("cccp1__inxp", SUM): ("7.37ms", "7.38ms"),
    ("cccp3__inxp", SUM): ("7.69ms", "7.70ms"),
    ("cccp3__inxp", SUM_SHARE): ("96.9%", "97.0%"),
    ("cccp5_filts__inxp", SUM_SHARE): ("97.2%", "97.3%"),
    ("cccp2_filts__inxp", SUM_SHARE): ("99.1%", "99.2%"),
    ("cccp1_filts__inxp", SUM_SHARE): ("99.2%", "99.3%"),
}


def printed_times(shared: Path) -> dict[str, str]:
    """Seconds of the 40 rows of PROFILE by name, as text."""
    lines = document(shared)
    rows = [line.split() for line in lines[lines.index("PROFILE:") + 2 : -1]]
    return {row[4]: f"{row[0][:-2]}{UNITS[row[0][-2:]]}" for row in rows}


def given(shared: Path, name: str) -> str:
    (found,) = re.findall(rf"INPUT: {name}=([\d.]+)", "\n".join(document(shared)))
    return str(found)


@pytest.fixture
def again(shared: Path, tmp_path: Path, capsys: Captured) -> list[str]:
    """What the command prints from the document's times, RUNTIME and POWER."""
    times = printed_times(shared)
    path = tmp_path / "times.csv"
    path.write_text("layer,seconds\n" + "".join(f"{n},{t}\n" for n, t in times.items()))
    args = ["--times", str(path), "--runtime", given(shared, "RUNTIME"), "--power",
            given(shared, "POWER"), "--as", "boda", "--no-stamp"]  # fmt: skip
    assert command(["show", "nin-nopad", "--batch", "5", *args]) == 0
    return capsys.readouterr().out.splitlines()


def cells(lines: list[str]) -> dict[tuple[str, str], list[str]]:
    """Every cell of the document by its row and column; lines of text are one cell."""
    found: dict[tuple[str, str], list[str]] = {}
    profile = lines.index("PROFILE:")
    for n, line in enumerate(lines[: profile + 2]):
        start, _, took = line.partition("  ---  ")
        found[str(n), "line"] = [start]
        if took:
            time, rate = took.split()
            found[start.split()[0], "took"] = [time, took.replace(rate, "")]
            found[start.split()[0], RATE] = [rate]
    for n, line in enumerate(lines[profile + 2 :]):
        time, share, passed, passed_share, name = line.split()
        columns = {"row": str(n), "time": time, SHARE: share, SUM: passed, SUM_SHARE: passed_share}
        for column, cell in columns.items():
            found.setdefault((name, column), []).append(cell)
    return found


def test_document_004_is_printed_again_from_its_times(shared: Path, again: list[str]) -> None:
    """All of it but the command line, TIMERS, and eleven cells."""
    lines = document(shared)
    start = next(n for n, line in enumerate(lines) if line.startswith("conv1 input"))
    theirs, ours = cells(lines[start:-1]), cells(again)
    assert theirs.keys() == ours.keys()
    assert len([key for key in theirs if key[1] == SUM]) == 40
    other = {key: (theirs[key][-1], ours[key][-1]) for key in theirs if theirs[key] != ours[key]}
    assert other == ROUNDED


def test_the_eleven_cells_are_within_the_rounding_of_the_times(shared: Path) -> None:
    """Times that round to those of the document give its cells: nothing in it is contradictory."""
    texts = printed_times(shared)
    times = {name: float(text) for name, text in texts.items()}
    whole = float(given(shared, "RUNTIME"))

    def half(name: str) -> float:
        """Half of the last digit that is printed."""
        mantissa, power = texts[name].split("e")
        decimals = len(mantissa.partition(".")[2])
        return float(f"0.5e{int(power) - decimals}")

    order = list(times)
    for (name, column), (cell, _) in ROUNDED.items():
        before = order[: order.index(name) + 1] if column in (SUM, SUM_SHARE) else [name]
        low = sum(times[each] - half(each) for each in before)
        high = sum(times[each] + half(each) for each in before)
        number = float(cell.rstrip("%TF/sm"))
        if column == RATE:
            flops = analyze("nin-nopad", batch=5, like="boda").by_name[name].convention_ops
            assert flops is not None
            bounds = flops / high / 1e12, flops / low / 1e12
        elif column == SUM:
            bounds = low * 1e3, high * 1e3
        else:
            bounds = low / whole * 100, high / whole * 100
        step = 0.05 if cell.endswith("%") else 0.005
        assert bounds[0] < number + step
        assert bounds[1] > number - step


def test_the_stamp_follows_an_empty_line(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "times.csv"
    path.write_text("layer,seconds\nconv1,1e-3\nconv1__inxp,1e-3\n")
    args = ["show", "nin-nopad", "--times", str(path), "--as", "boda", "--power", "7"]
    assert command([*args, "--no-stamp"]) == 0
    table = capsys.readouterr().out
    assert command(args) == 0
    text = capsys.readouterr().out
    assert text.startswith(table + "\nEnergy ? J per run at 7 W, assumed by --power.\n")
    assert f"{path}: 1 of 2 rows match a layer; 28 of 29 layers have no time (?)\n" in text
    last = text.splitlines()[-1]
    assert f"times from {path}, threads, runs and contention unknown" in last


def small(times: dict[str, float], runtime: float | None = None) -> tuple[Report, str]:
    report = analyze(mixed(), like="boda")
    run = run_of(TimesFile("t", times), report, Given(runtime))
    return report, write(report, run=run)


def test_unknown_times_are_marked() -> None:
    _, text = small({"cut": 0.5, "cut__inxp": 0.25, "zero": 0.0})
    assert "  ---  500ms 295KF/s \n" in text
    assert "up FWD 131KF 33.8KB  FWD_AI 3.88F/B  MxNxK=256x16x16  ---  ? \n" in text
    assert "total _inxp time:  250ms\n-- INPUT: RUNTIME=?s --\n" in text
    assert re.search(r"\n\S+F \?F/s\n\S+B \?B/s AI=\S+F/B\n", text)
    assert text.endswith(
        "func_name \n"
        "500ms     ?%        500ms     ?%        cut       \n"
        "250ms     ?%        750ms     ?%        cut__inxp \n"
        "0s        ?%        750ms     ?%        zero      \n"
    )
    _, text = small({"other": 0.5}, 1.0)
    assert text.count("  ---  ? ") == 3


def test_a_layer_that_took_no_time_has_no_rate() -> None:
    _, text = small({"cut": 0.0}, 1.0)
    assert "  ---  0s ?F/s \n" in text


def test_equal_times_are_in_the_order_of_boda() -> None:
    """Boda sorts pairs of time and name, and prints them backwards."""
    _, text = small({"b": 0.5, "c": 0.5, "a": 0.5}, 2.0)
    names = [line.split()[-1] for line in text.splitlines()[-3:]]
    assert names == ["c", "b", "a"]


def test_runtime_and_power_alone() -> None:
    report = analyze("nin-nopad", batch=5, like="boda")
    plain = write(report, "totals").splitlines()

    def totals(*given: float | None) -> list[str]:
        return write(report, "totals", run_without_times(report, Given(*given))).splitlines()

    assert totals(0.00793677, 200.0) == [
        "-- INPUT: RUNTIME=0.00793677s --",
        "-- INPUT: POWER=200W --",
        *plain[:3],
        "12.6GF 1.58TF/s",
        "99.2MB 12.5GB/s AI=127F/B",
        "1.59J 7.91GF/s/W",
    ]
    assert totals(0.00793677)[-2:] == ["12.6GF 1.58TF/s", "99.2MB 12.5GB/s AI=127F/B"]
    assert totals(None, 200.0)[-3:] == ["12.6GF ?F/s", "99.2MB ?B/s AI=127F/B", "?J ?F/s/W"]
    for part in ("profile", "timers"):
        with pytest.raises(UsageError, match="needs a measured run; no times of layers"):
            write(report, part, run_without_times(report, Given(1.0)))


# -- gradients


def test_gradients_are_by_the_rules(shared: Path) -> None:
    """Against the exact integers of the document's network."""
    path = shared / "truth" / "boda" / "nin_imagenet_nopad.csv"
    with path.open(encoding="utf-8") as file:
        *rows, total = csv.DictReader(file)
    report = analyze("nin-nopad", batch=5, like="boda")
    lines = write(report, "layers,backward,totals").splitlines()
    moved = 0
    for n, row in enumerate(rows):
        sizes = {key: int(row[f"{key}_bytes"]) for key in ("input", "filter", "bias", "output")}
        flops = int(row["flops_2_per_mac"])
        size = 2 * (sizes["input"] + sizes["filter"] + sizes["bias"]) + sizes["output"]
        moved += size
        name, m, product, k = row["name"], row["M"], row["N"], row["K"]
        each = si_text(flops)
        assert lines[2 * n].split("  ") == [
            f"{name} FWD {each}F {si_text(int(row['forward_bytes_with_bias']))}B",
            f"--- BACK_GRAD {each}F",
            f"--- BACK_DIFF {each}F",
            f"FWD_AI {si_text(float(row['ai_flops_per_byte']))}F/B",
            f"MxNxK={m}x{product}x{k}",
            f"BACKWARD_BYTES {si_text(size)}B",
        ]
        assert lines[2 * n + 1].split("  ") == [
            f"{name}_bck BCK {si_text(2 * flops)}F {si_text(size)}B",
            f"BCK_AI {si_text(2 * flops / size)}F/B",
            f"fg-MxNxK={k}x{product}x{m}",
            f"ig-MxNxK={m}x{k}x{product}",
        ]
        for text in re.findall(r"[fi]g-MxNxK=(\S+)", lines[2 * n + 1]):
            assert 2 * prod(map(int, text.split("x"))) == flops
    whole, both = int(total["flops_2_per_mac"]), int(total["forward_bytes_with_bias"]) + moved
    assert lines[-5:] == [
        f"{si_text(whole)}F",
        "99.2MB AI=127F/B",
        "--- FWD+BCK TOTALS ---",
        f"{si_text(3 * whole)}F",
        f"{si_text(both)}B AI={si_text(3 * whole / both)}F/B",
    ]


def test_gradients_of_other_layers() -> None:
    text = write(analyze(mixed(), like="boda"), "backward")
    assert text.splitlines() == [
        "cut  --- BACK_GRAD 147KF  --- BACK_DIFF 147KF  BACKWARD_BYTES 35.1KB",
        "cut_bck BCK 295KF 35.1KB  BCK_AI 8.41F/B  fg-MxNxK=18x4x256 x4  ig-MxNxK=256x18x4 x4",
        "up  --- BACK_GRAD 131KF  --- BACK_DIFF 131KF  BACKWARD_BYTES 51.2KB",
        "up_bck BCK 262KF 51.2KB  BCK_AI 5.12F/B  fg-MxNxK=16x16x256  ig-MxNxK=256x16x16",
        "fc  --- BACK_GRAD 81.9KF  --- BACK_DIFF 81.9KF  BACKWARD_BYTES 360KB",
        "fc_bck BCK 164KF 360KB  BCK_AI 454mF/B  fg-MxNxK=4096x10x1  ig-MxNxK=1x4096x10",
    ]


def test_a_forward_time_gives_no_rate_of_the_gradients() -> None:
    """RUNTIME is of one pass: of both only if there are times of backward convolutions."""
    report = analyze(mixed(), like="boda")

    def lines(times: dict[str, float]) -> list[str]:
        run = run_of(TimesFile("t", times), report, Given(1.0, 2.0))
        return write(report, "layers,totals,backward", run).splitlines()

    forward = lines({"cut": 0.5})
    start = forward.index("--- FWD TOTALS ---")
    assert forward[start + 1].endswith("F/s")
    assert forward[start + 3].startswith("2.00J ")
    assert forward[start + 4 :][0] == "--- FWD+BCK TOTALS ---"
    assert not any("/s" in line for line in forward[start + 5 :])
    assert not any("BCK" in line and " ---  " in line for line in forward[:start])
    both = lines({"cut": 0.25, "cut_bck": 0.5})
    start = both.index("--- FWD TOTALS ---")
    assert both[start + 1] == "360KF"
    assert both[-3].endswith("F/s")
    assert both[-1].startswith("2.00J ")
    assert both[1].endswith("  ---  500ms 590KF/s ")
    assert both[3].endswith("  ---  ? ")


def test_gradients_of_unknown_layers_are_marked() -> None:
    from layerscope import Builder

    b = Builder("odd")
    x = b.add_node("mystery", (b.input("data", (1, 3, 8, 8)),), name="what")[0]
    report = analyze(b.build(b.conv(x, 4, 3, name="after")), like="boda")
    text = write(report, "layers,backward,totals")
    assert text.splitlines()[:2] == [
        "after FWD ? ?  --- BACK_GRAD ?  --- BACK_DIFF ?  FWD_AI ?  MxNxK=?  BACKWARD_BYTES ?",
        "after_bck BCK ? ?  BCK_AI ?  fg-MxNxK=?  ig-MxNxK=?",
    ]
    assert text.endswith("--- FWD+BCK TOTALS ---\n?F\n?B AI=?F/B\n")


def test_backward_is_a_part_to_choose() -> None:
    report = analyze(mixed(), like="boda")
    assert "BCK" not in write(report)
    with pytest.raises(UnknownName, match="did you mean backward"):
        write(report, "backwards")


@pytest.mark.parametrize("power", [None, 2.0])
def test_rates_of_sums_with_an_unknown_part_are_lower_bounds(power: float | None) -> None:
    from layerscope import Builder

    b = Builder("odd")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="conv")
    report = analyze(b.build(b.add_node("mystery", (x,), name="what")[0]), like="boda")
    run = run_of(TimesFile("t", {"conv": 0.5}), report, Given(1.0, power))
    lines = write(report, "layers,totals", run).splitlines()
    start = lines.index("--- FWD TOTALS ---")
    flops, moved, *watts = lines[start + 1 :]
    assert flops.split() == ["7.78KF+?", "≥7.78KF/s"]
    assert moved.split()[1].startswith("≥")
    assert [line.split()[1] for line in watts] == ([] if power is None else ["≥3.89KF/s/W"])
    assert lines[0].endswith("500ms 15.6KF/s ")  # of the layer alone: exact


def test_rates_of_nothing_known_are_unknown() -> None:
    from layerscope import Builder

    b = Builder("odd")
    report = analyze(b.build(b.add_node("mystery", (b.input("data", (1, 8)),), name="what")[0]),
                     like="boda")  # fmt: skip
    run = run_without_times(report, Given(1.0, 2.0))
    lines = write(report, "totals", run).splitlines()
    start = lines.index("--- FWD TOTALS ---")
    assert lines[start + 1] == "?F ?F/s"
    assert lines[start + 2] == "?B ?B/s AI=?F/B"
    assert lines[start + 3] == "2.00J ?F/s/W"
