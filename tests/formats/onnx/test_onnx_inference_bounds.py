"""Files that would make the onnx package allocate gigabytes while it infers shapes."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper, save  # noqa: TID251

READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import layerscope
print(layerscope.analyze(sys.argv[1]).coverage)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="no limit of memory here")
@pytest.mark.parametrize("opset", [8, 9, 13, 20])
@pytest.mark.parametrize(
    ("op", "inputs"),
    [("Expand", ["x", "sizes"]), ("Reshape", ["x", "sizes"]), ("ConstantOfShape", ["sizes"])],
)
def test_a_shape_of_two_billion_axes_is_not_inferred(
    op: str, inputs: list[str], opset: int, tmp_path: Path
) -> None:
    if op == "ConstantOfShape" and opset < 9:
        pytest.skip("ConstantOfShape is of opset 9")
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"])],
        "net",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4]),
            helper.make_tensor_value_info("sizes", TensorProto.INT64, [2**31 - 1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    path = tmp_path / "net.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    save(model, str(path))
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"unknown: {op}" in done.stdout or "0 of 1" in done.stdout
