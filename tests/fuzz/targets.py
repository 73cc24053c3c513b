"""What is fuzzed: any bytes give a result that fits its file, or a named error.

Formats with checksums or compression are wrapped here: the bytes are what is inside.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import struct
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from layerscope.api.networks import analyze, load
from layerscope.auditing.document import audit_text
from layerscope.auditing.fix import fix
from layerscope.cli.network import parse_dims
from layerscope.documents.reader import BREAK
from layerscope.documents.reader import load as load_text
from layerscope.errors import LayerscopeError
from layerscope.export import report_file, run_json
from layerscope.formats import (
    DEFAULTS,
    ReadOptions,
    builder_text,
    document,
    documents,
    gguf,
    matconvnet,
)
from layerscope.formats import onnx as onnx_format
from layerscope.formats.caffe import caffemodel, prototxt
from layerscope.formats.config_file import read_config
from layerscope.formats.torch import pt2
from layerscope.formats.torch.checkpoints import safetensors, torch_save
from layerscope.formats.torch.model_names import hugging_face
from layerscope.graph.serialize import from_plain, to_plain
from layerscope.graph.types import storage_bytes
from layerscope.limits import MOST_SIZE
from layerscope.notations import NOTATIONS, boda
from layerscope.notations import write as write_notation
from layerscope.plot.roofline import measured_roofline
from layerscope.plot.roofs import roofs_of_run
from layerscope.plot.times import times
from layerscope.report import budget_file, given_run, quantities, times_file
from layerscope.report.budgets import judge
from layerscope.report.measurement import Measurement

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
REGRESSIONS = Path(__file__).parent / "regressions"
DEPLOY = str(Path(__file__).parent / "deploy.prototxt")
MAT_HEADER = 128  # bytes before the first element of a MATLAB file
STORAGES = {"0": 64, "1": 64, "2": 4096}  # in the archives around a fuzzed pickle: key -> bytes


def fuzz_protobuf(data: bytes) -> None:
    """Read the bytes as a .caffemodel, alone and as the weights of a prototxt."""
    caffemodel.recognise(data)
    _read(data, ".caffemodel", lambda path: analyze(caffemodel.read(path, DEFAULTS)))
    _read(data, ".caffemodel", lambda path: load(DEPLOY, weights=path))


def fuzz_prototxt(data: bytes) -> None:
    """Read the bytes as a .prototxt."""
    prototxt.recognise(data)
    _read(data, ".prototxt", lambda path: analyze(prototxt.read(path, DEFAULTS)))


def fuzz_builder(data: bytes) -> None:
    """Read the bytes as Builder calls."""
    builder_text.recognise(data)
    _read(data, ".builder", lambda path: analyze(builder_text.read(path, DEFAULTS)))


def fuzz_onnx(data: bytes) -> None:
    """Read the bytes as an ONNX model, as it is declared and with a batch of its own."""
    onnx_format.recognise(data)
    _read(data, ".onnx", lambda path: analyze(onnx_format.read(path, DEFAULTS)))
    _read(data, ".onnx", lambda path: onnx_format.read(path, ReadOptions(batch=3)))


def fuzz_mat5(data: bytes) -> None:
    """Read the bytes as a MATLAB file of version 5, plain and with its elements compressed."""
    matconvnet.recognise(data)
    packed = zlib.compress(data[MAT_HEADER:], 1)
    order = ">" if data[126:MAT_HEADER] == b"MI" else "<"
    tag = struct.pack(f"{order}II", 15, len(packed))
    for each in (data, data[:MAT_HEADER] + tag + packed):
        _read(each, ".mat", lambda path: analyze(matconvnet.read(path, DEFAULTS)))


def fuzz_safetensors(data: bytes) -> None:
    """Read the bytes as safetensors: its arrays have no more bytes than it stores."""
    safetensors.recognise(data)

    def read(path: str) -> None:
        arrays = safetensors.safetensors_arrays(path)
        sizes = [_count(array.shape, array.dtype) for array in arrays]
        stored = len(data) - 8 - int.from_bytes(data[:8], "little")
        assert sum(sizes) <= stored, "arrays of more bytes than are behind the header"
        analyze(safetensors.read(path, DEFAULTS))

    _read(data, ".safetensors", read)
    _read(data, ".safetensors.index.json", lambda path: safetensors.read(path, DEFAULTS))


def fuzz_gguf(data: bytes) -> None:
    """Read the bytes as GGUF: its arrays have no more bytes than it stores."""
    gguf.recognise(data)

    def read(path: str) -> None:
        arrays = gguf.gguf_file(path).arrays
        sizes = [_count(array.shape, array.dtype) for array in arrays]
        assert sum(sizes) <= len(data), "arrays of more bytes than the file has"
        analyze(gguf.read(path, DEFAULTS))

    _read(data, ".gguf", read)


def fuzz_pickle(data: bytes) -> None:
    """Read the bytes as a file of torch.save before 1.6, and as the pickle of a later one."""
    torch_save.recognise(data)
    _read(data, ".pt", lambda path: analyze(torch_save.read(path, DEFAULTS)))
    members = {"a/data.pkl": data, **{f"a/data/{key}": bytes(n) for key, n in STORAGES.items()}}
    _read(zipped(members), ".pt", lambda path: analyze(torch_save.read(path, DEFAULTS)))


def fuzz_zip(data: bytes) -> None:
    """Read the bytes as an archive of torch.save and as one of torch.export.save."""
    torch_save.recognise(data)
    pt2.recognise(data)
    _read(data, ".pt", lambda path: analyze(torch_save.read(path, DEFAULTS)))
    _read(data, ".pt2", lambda path: analyze(pt2.read(path, DEFAULTS)))


def fuzz_pt2(data: bytes) -> None:
    """Read the first line as the program of a .pt2 file, the second as where its weights are."""
    program, _, places = data.partition(b"\n")
    members = {"net/archive_format": b"pt2", "net/models/model.json": program}
    if places:
        members["net/data/weights/model_weights_config.json"] = places
        members["net/data/weights/weight_0"] = bytes(432)
    archive = zipped(members)
    _read(archive, ".pt2", lambda path: analyze(pt2.read(path, DEFAULTS)))
    _read(archive, ".pt2", lambda path: pt2.read(path, ReadOptions(batch=3)))


def fuzz_run_json(data: bytes) -> None:
    """Read the bytes as a kept run or a report: it is written as it was read."""

    def read(path: str) -> None:
        if documents.kind_of(path, data[:4096]) == "report":
            report = report_file.read_file(path)
            with run_json.reading(path):
                document = json.loads(report.to_json())
            assert document["totals"]["params"] == report.totals.params, "written otherwise"
            return
        found = run_json.read_file(path)
        _check_run(found)
        with run_json.reading(path):
            report = analyze(from_plain(found.graph))
            text = run_json.write_json(found, report)
            times(report, found)
            measured_roofline(report, found, roofs_of_run(report, found))
        assert run_json.read_json(text.encode()) == found, "written otherwise than read"

    _read(data, ".json", read)


def _check_run(found: Measurement) -> None:
    """Raise where a run that was taken has figures that no run has."""
    waiting: list[Any] = [msgspec.to_builtins(found)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (dict, list, tuple)):
            waiting += each.values() if isinstance(each, dict) else each
        elif isinstance(each, (int, float)):
            assert -MOST_SIZE <= each <= MOST_SIZE, each
    assert found.runs, "no run"
    for run in found.runs:
        known = (run.timing.end_to_end_s, run.threads)
        assert all(value is None or value > 0 for value in known), "no time"


def fuzz_hf_config(data: bytes) -> None:
    """Read the bytes as a config.json, and work out the inputs of a model that has it."""

    def read(path: str) -> None:
        settings = read_config(path)
        assert isinstance(settings["model_type"], str), "model_type"
        for main in ("pixel_values", "input_features", "input_values", "input_ids"):
            with contextlib.suppress(LayerscopeError):
                config = _namespace(settings)
                hugging_face._checked_parts(path, config, SimpleNamespace)
                shapes = hugging_face._default_inputs(path, _Model(main), config)
                sizes = [size for shape in shapes.values() for size in shape]
                assert all(type(size) is int and 0 < size <= MOST_SIZE for size in sizes), shapes

    _read(data, ".json", read)


class _Model:
    """Stands for a model of transformers."""

    def __init__(self, main: str) -> None:
        self.main_input_name = main

    def forward(self, input_ids: Any, pixel_values: Any, decoder_input_ids: Any) -> None:
        """Its names are looked at."""


def _namespace(settings: dict[str, Any]) -> SimpleNamespace:
    parts = ("text_config", "vision_config")
    inner = {
        name: _namespace(value) if name in parts and isinstance(value, dict) else value
        for name, value in settings.items()
    }
    return SimpleNamespace(**inner)


def fuzz_numbers(data: bytes) -> None:
    """Read every line as a quantity, a number, a shape and a size by name of the command line."""
    texts = tuple(data.decode("utf-8", "replace").split("\n"))
    for text in texts:
        for read in (_quantities, _wholes, _sizes, _dims, _reals):
            with contextlib.suppress(LayerscopeError):
                numbers = read(text)
                assert all(abs(number) <= MOST_SIZE for number in numbers), (text, numbers)
    with contextlib.suppress(LayerscopeError):
        quantities.named_sizes(texts, "--input")


def _quantities(text: str) -> list[int]:
    units: tuple[quantities.Unit, ...] = ("count", "bytes")
    found = []
    for unit in units:
        with contextlib.suppress(LayerscopeError):
            found.append(quantities.quantity(text, unit, "--max"))
    return found


def _wholes(text: str) -> list[int]:
    return [quantities.whole(text, "--batch")]


def _reals(text: str) -> list[float]:
    return [quantities.real(text, "--power")]


def _sizes(text: str) -> list[int]:
    found = list(quantities.shape_of(text, "--input"))
    assert min(found) > 0, found
    return found


def _dims(text: str) -> list[int]:
    found = list(parse_dims((text, "n=4")).values())
    assert min(found) > 0, found
    return found


def fuzz_budget(data: bytes) -> None:
    """Read the bytes as a pyproject.toml with budgets, and hold a network against them."""
    report = _report()

    def read(path: str) -> None:
        found = budget_file.read(Path(path))
        tables = tomllib.loads(data.decode())["tool"]["layerscope"]["budgets"]
        for name, each in found.items():
            table = tables[name]
            for key in ("batch", "dtype", "tokens", "decode"):  # what the file says is not dropped
                assert getattr(each, key) == table.get(key), (key, table)
            numbers = [*each.limits.values(), each.batch or 0]
            assert all(abs(number) <= MOST_SIZE for number in numbers), each
            assert all(size > 0 for size in each.reading.get("dims", {}).values()), each
            judge(report, each)

    _read(data, ".toml", read)


def fuzz_times(data: bytes) -> None:
    """Read the bytes as times of layers, and print the run of them in every form."""
    report = _report()

    def read(path: str) -> None:
        found = times_file.read(path)
        numbers = [*found.seconds.values(), found.runtime_s or 0.0]
        assert all(0 <= number <= quantities.SECONDS[1] for number in numbers), numbers
        assert found.runtime_s is None or found.runtime_s > 0, "no time"
        run = given_run.run_of(found, report, given_run.Given(power_w=5.0))
        plain = to_plain(report.graph)
        kept = Measurement("lenet5", plain, 1, "fp32", (run,), None, "1", "")
        for form in ("text", "markdown", "csv", "latex", "html", "json"):
            getattr(kept, f"to_{form}")()
        boda.write(report, run=run)

    _read(data, ".csv", read)


def fuzz_document(data: bytes) -> None:
    """Read the bytes as a document, and analyze every network in it."""
    document.recognise(data)

    def read(path: str) -> None:
        found = document.networks_of(load_text(path))
        for number, network in enumerate(found[:4], 1):
            graph = document.read(f"{path}#{number}", DEFAULTS)
            rows = [row for row in network.rows if row.kind != "input"]
            if network.build is None:
                assert len(graph.nodes) == len(rows)  # none is left out
                assert len(graph.inputs) == max(len(network.rows) - len(rows), 1)
            assert from_plain(to_plain(graph)) == graph
            report = analyze(graph)
            assert len(report.layers) == len(graph.nodes)
            if graph.claims is not None and graph.claims.notation in NOTATIONS:
                write_notation(report, graph.claims.notation)

    _read(data, ".md", read)


def fuzz_audit(data: bytes) -> None:
    """Read the bytes as a document, audit and correct its tables, and print what is found."""

    def read(path: str) -> None:
        text = load_text(path)
        found = audit_text(text, "document")
        lines = len(BREAK.split(text))
        assert all(1 <= finding.line <= lines for finding in found.findings), "no such line"
        for form in ("text", "markdown", "csv", "latex", "html", "json"):
            getattr(found, f"to_{form}")()
        if found.findings:
            assert fix(text, "document").text.count("\n") == text.count("\n"), "other lines"

    _read(data, ".md", read)


def _report() -> Any:
    if not _REPORTS:
        _REPORTS.append(analyze("lenet5"))
    return _REPORTS[0]


_REPORTS: list[Any] = []


def zipped(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these members, in their order, all compressed in one way."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, kind)
    return file.getvalue()


def _count(shape: tuple[int, ...], dtype: str) -> int:
    elements = 1
    for size in shape:
        elements *= size
    return storage_bytes(elements, dtype)


def _read(data: bytes, suffix: str, read: Callable[[str], object]) -> None:
    with tempfile.NamedTemporaryFile(suffix=suffix, dir=MEMORY) as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(LayerscopeError):
            read(file.name)


TARGETS = {
    "prototxt": fuzz_prototxt, "protobuf": fuzz_protobuf, "onnx": fuzz_onnx, "mat5": fuzz_mat5,
    "safetensors": fuzz_safetensors, "gguf": fuzz_gguf, "pickle": fuzz_pickle, "zip": fuzz_zip,
    "pt2": fuzz_pt2,
    "run_json": fuzz_run_json, "hf_config": fuzz_hf_config, "numbers": fuzz_numbers,
    "budget": fuzz_budget, "times": fuzz_times, "document": fuzz_document, "audit": fuzz_audit,
    "builder": fuzz_builder,
}  # fmt: skip
