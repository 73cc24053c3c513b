"""Files to begin from: `python -m tests.fuzz.seeds FOLDER` writes a folder a target."""

from __future__ import annotations

import sys
from pathlib import Path

from layerscope.formats.caffe.names import NUMBERED, WORDS
from tests import wire

TEXT = """name: "n" input: "data" input_dim: 1 input_dim: 2 input_dim: 8 input_dim: 8
layer {{ name: "c" type: "Convolution" bottom: "data" top: "c" include {{ phase: TEST }}
  param {{ name: "w" lr_mult: 1 }}
  convolution_param {{ num_output: 4 kernel_size: 3 pad: 1 group: 2 bias_term: false }} }}
layer {{ name: "x" type: "{word}" bottom: "c" bottom: "data" top: "x"
  pooling_param {{ pool: AVE kernel_size: 2 stride: 2 }} inner_product_param {{ num_output: 3 }}
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} slice_param {{ slice_point: 1 }} }}
"""
OLD = 'input: "data" input_dim: [1, 2, 8, 8] layers {{ type: {word} bottom: "data" top: "x" }}'


def texts() -> dict[str, bytes]:
    """A small prototxt for every type, in both forms."""
    made = {word: TEXT.format(word=word).encode() for word in WORDS}
    return made | {word: OLD.format(word=word).encode() for word in NUMBERED}


def messages() -> dict[str, bytes]:
    """A small .caffemodel for every type, in both forms, and for many fields of settings."""
    head = wire.field(3, "data") + wire.field(4, 1, 2, 8, 8)
    conv = wire.layer("c", "Convolution", "data", "c", wire.conv(2, 3), wire.blobs((2, 2, 3, 3)))
    some = wire.field(1, 2) + wire.field(2, 2) + wire.field(3, 1)
    made = {}
    for n, word in enumerate(WORDS):
        settings = wire.field(100 + n, some)
        last = wire.layer("x", word, "c data", "x", settings, wire.blobs((2,), (2,)))
        made[word] = head + conv + last
    for n, word in enumerate(NUMBERED):
        last = wire.old_layer("x", n, "data", "x", wire.field(n + 1, some), wire.old((2,)))
        made[word] = head + last
    return made


def models() -> dict[str, bytes]:
    """The small ONNX models of onnx's own tests, and random ones."""
    from tests.fuzz.onnx_nets import net
    from tests.onnx_models import SMALL

    made = {path.parent.name: path.read_bytes() for path in SMALL}
    made = {name: data for name, data in made.items() if len(data) < 2048}
    return made | {f"net{seed}": net(seed) for seed in range(400)}


if __name__ == "__main__":
    for name, files in (("protobuf", messages()), ("prototxt", texts()), ("onnx", models())):
        folder = Path(sys.argv[1], name)
        folder.mkdir(parents=True, exist_ok=True)
        for word, data in files.items():
            (folder / word).write_bytes(data)
