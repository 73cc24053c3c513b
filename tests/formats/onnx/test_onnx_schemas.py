"""Names of inputs in the tables of converters, against the schemas of onnx and ONNX Runtime."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import defs  # noqa: TID251

from layerscope.formats.onnx import converters
from layerscope.formats.onnx.converters.table import CONVERTERS
from tests.formats.onnx.onnx_files import model, node
from tests.test_imports import loaded

FOLDER = Path(converters.__file__).parent
# Operators whose last schema with inputs is not the latest one, or that only old files have.
OLD = {("", "ConstantFill"), ("", "HardTanh"), ("", "QuickGelu")}
# ONNX Runtime's aliases of ai.onnx operators have no schema of their own.
ALIASES = {
    ("com.microsoft", "LayerNormalization"): ("", "LayerNormalization"),
    ("com.microsoft", "RMSNormalization"): ("", "RMSNormalization"),
    ("com.microsoft", "SimplifiedLayerNormalization"): ("", "RMSNormalization"),
}
# Methods of OnnxNode whose arguments are names of inputs; of `param`, only the first one is.
READERS = {
    "input", "has", "shape", "dtype", "stored", "value", "need_value", "unknown_value", "optional",
    "given", "mark_constant", "index", "param",
}  # fmt: skip


def schemas() -> dict[tuple[str, str], tuple[str, ...]]:
    """Names of inputs by domain and operator, of the latest version that is not deprecated."""
    versions: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for schema in defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        if not schema.deprecated and schema.since_version > versions.get(key, 0):
            versions[key] = schema.since_version
            found[key] = tuple(each.name for each in schema.inputs)
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    except ImportError:  # a build without it
        return found
    for schema in get_all_operator_schema():
        found.setdefault((schema.domain, schema.name), tuple(each.name for each in schema.inputs))
    return found


SCHEMAS = schemas()


def cases() -> list[tuple[str, str]]:
    runtime = any(domain == "com.microsoft" for domain, _ in SCHEMAS)
    return [key for key in CONVERTERS if key in SCHEMAS or runtime or not key[0].startswith("com.")]


@pytest.mark.parametrize("key", cases(), ids=lambda key: ".".join(filter(None, key)))
def test_names_are_those_of_the_schema(key: tuple[str, str]) -> None:
    if key in OLD:
        assert key not in SCHEMAS
        return
    names, schema = CONVERTERS[key].inputs, SCHEMAS[ALIASES.get(key, key)]
    if len(schema) == 1:  # `X`, `input` or `data`: the converter takes the first input
        assert len(names) == 1
    else:
        assert names == schema


def converter_files() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(FOLDER.glob("*.py")):
        yield path.name, ast.parse(path.read_text(encoding="utf-8"))


def test_converters_read_inputs_that_an_operator_has() -> None:
    """A name that no operator has would be an input that is never given."""
    names = {name for op in CONVERTERS.values() for name in op.inputs}
    unknown = [
        f"{file}:{call.lineno} {argument.value}"
        for file, tree in converter_files()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "node"
        and call.func.attr in READERS
        for argument in (call.args[:1] if call.func.attr == "param" else call.args)
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        if argument.value not in names
    ]
    assert unknown == []


def test_an_operator_is_in_one_table() -> None:
    keys = [
        key
        for path in FOLDER.glob("*.py")
        for key in getattr(
            __import__(f"{converters.__name__}.{path.stem}", fromlist=["OPERATORS"]),
            "OPERATORS",
            (),
        )
        if path.stem != "__init__"
    ]
    assert sorted(keys) == sorted(CONVERTERS)


def test_families_of_rare_operators_are_imported_when_a_model_has_one(tmp_path: Path) -> None:
    stem = converters.__name__
    for op, rare in (("Relu", False), ("Det", True)):
        path = tmp_path / f"{op}.onnx"
        path.write_bytes(model([node(f"y = {op} x")]).SerializeToString())
        modules = loaded("show", str(path))
        assert f"{stem}.activation" in modules
        assert (f"{stem}.linalg" in modules, f"{stem}.ml" in modules) == (rare, rare)
