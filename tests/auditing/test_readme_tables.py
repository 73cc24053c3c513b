"""Tables as people write them: right ones have no findings, and a wrong cell is named."""

from __future__ import annotations

import pytest

from layerscope.auditing.document import audit_text


def markdown(heading: str, rows: list[tuple[object, ...]]) -> str:
    lines = [heading, "|".join("---" for _ in heading.split("|"))]
    return "\n".join([*lines, *(" | ".join(map(str, row)) for row in rows)]) + "\n"


def unet() -> str:
    """Kernels beside the word for the layer, joins with a row, transposed convolutions."""
    rows: list[tuple[object, ...]] = []

    def conv(name: str, side: int, before: int, after: int) -> None:
        count = 9 * before * after + after
        rows.append((name, "Conv 3x3 + ReLU", f"{side}x{side}x{after}", f"{count:,}"))

    conv("enc1a", 256, 3, 64)
    conv("enc1b", 256, 64, 64)
    rows.append(("pool1", "MaxPool 2x2", "128x128x64", "0"))
    conv("mid1", 128, 64, 128)
    conv("mid2", 128, 128, 128)
    rows.append(("up1", "UpConv 2x2", "256x256x64", f"{4 * 128 * 64 + 64:,}"))
    rows.append(("cat1", "Concat(up1, enc1b)", "256x256x128", "0"))
    conv("dec1a", 256, 128, 64)
    conv("dec1b", 256, 64, 64)
    rows.append(("out", "Conv 1x1", "256x256x2", "130"))
    return markdown("Name | Operation | Output size | # Params", rows)


def residual() -> str:
    """Branches without joins, figures in K and M, and no pool before the last layer."""
    rows: list[tuple[object, ...]] = [("conv1", "7x7", 64, "112x112", "9.4K", "118.0M")]
    channels = 64
    for stage, (filters, side) in enumerate([(64, 56), (128, 28), (256, 14)], 2):
        for name, kernel, given in (("a", 3, channels), ("b", 3, filters), ("proj", 1, channels)):
            count = kernel * kernel * given * filters
            if name == "proj" and stage == 2:
                continue
            short = f"{count / 1e3:.1f}K" if count < 10**6 else f"{count / 1e6:.2f}M"
            macs = f"{count * side * side / 1e6:.1f}M"
            size = f"{side}x{side}"
            rows.append((f"conv{stage}_{name}", f"{kernel}x{kernel}", filters, size, short, macs))
        channels = filters
    rows.append(("fc", "-", 10, "1x1", "2.6K", "0.0M"))
    return markdown("layer | kernel | channels | output | weights | MACs", rows)


def sentences() -> str:
    """Sequences: channels are the last of two axes."""
    rows: list[tuple[object, ...]] = [
        ("embedding (Embedding)", "(None, 400, 50)", 250000),
        ("conv1d (Conv1D)", "(None, 398, 250)", 3 * 50 * 250 + 250),
        ("conv1d_1 (Conv1D)", "(None, 396, 64)", 3 * 250 * 64 + 64),
        ("global_max_pooling1d (GlobalMaxPooling1D)", "(None, 64)", 0),
        ("dense (Dense)", "(None, 250)", 64 * 250 + 250),
        ("dense_1 (Dense)", "(None, 1)", 251),
    ]
    return markdown("Layer | Output Shape | Param #", rows)


def tiny_yolo() -> str:
    """Darknet's pool of stride 1 keeps its size."""
    lines = ["layer     filters    size              input                output"]
    side, channels, number = 416, 3, 0
    for filters in (16, 0, 32, 0, 64, 0, 128, 0, 256, 0, 512, -1, 1024):
        step = 2 if filters == 0 else 1
        after = filters if filters > 0 else channels
        what = f"conv  {filters:5d}  3 x 3" if filters > 0 else "max          2 x 2"
        shapes = [f"{s:3d} x {s:3d} x{c:4d}" for s, c in ((side, channels), (side // step, after))]
        lines.append(f"{number:5d} {what} / {step}   {shapes[0]}   ->   {shapes[1]}")
        side, channels, number = side // step, after, number + 1
    return "\n".join(lines) + "\n"


def page() -> str:
    """HTML with kernels in the type."""
    rows = [
        ("conv1 (Conv2D, 3x3)", "(None, 32, 32, 32)", "896", "1.77M"),
        ("pool1 (MaxPooling2D)", "(None, 16, 16, 32)", "0", "-"),
        ("conv2 (Conv2D, 3x3)", "(None, 16, 16, 64)", "18,496", "9.44M"),
        ("pool2 (MaxPooling2D)", "(None, 8, 8, 64)", "0", "-"),
        ("flatten (Flatten)", "(None, 4096)", "0", "-"),
        ("dense1 (Dense)", "(None, 256)", "1,048,832", "2.10M"),
        ("dense2 (Dense)", "(None, 10)", "2,570", "0.01M"),
    ]
    cells = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in rows)
    names = ("Layer (type)", "Output shape", "Params", "FLOPs")
    return f"<table><tr>{''.join(f'<th>{n}</th>' for n in names)}</tr>\n{cells}</table>\n"


TABLES = {f.__name__: f() for f in (unet, residual, sentences, tiny_yolo, page)}
# the table, the right text and a wrong one, and the row and column that are named
WRONG = [
    ("unet", "73,792", "78,792", "dec1a", "# Params"),
    ("unet", "32,832", "32,932", "up1", "# Params"),
    ("residual", "8.2K", "8.6K", "conv3_proj", "weights"),
    ("residual", "118.0M", "718.0M", "conv1", "MACs"),
    ("sentences", "398, 250", "398, 280", "conv1d (Conv1D)", "Output Shape"),
    ("sentences", "37750", "37150", "conv1d (Conv1D)", "Param #"),
    ("tiny_yolo", "208 x 208 x  16\n", "203 x 208 x  16\n", "1", "output"),
    ("page", "18,496", "18,436", "conv2 (Conv2D, 3x3)", "Params"),
    ("page", "9.44M", "9.84M", "conv2 (Conv2D, 3x3)", "FLOPs"),
]


@pytest.mark.parametrize("name", TABLES)
def test_right_tables_have_no_findings(name: str) -> None:
    assert audit_text(TABLES[name], name).findings == ()


@pytest.mark.parametrize("change", WRONG)
def test_a_wrong_cell_is_named(change: tuple[str, str, str, str, str]) -> None:
    name, right, wrong, row, column = change
    assert right in TABLES[name]
    (found,) = audit_text(TABLES[name].replace(right, wrong, 1), name).findings
    assert found.row == row
    assert found.column == column or any(cell.startswith(f"{column} in") for cell in found.also)
