"""Files to begin from: `python -m tests.fuzz.seeds FOLDER` writes a folder a target."""

from __future__ import annotations

import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from pickle import dumps

from layerscope.api.networks import analyze
from layerscope.formats.caffe.names import NUMBERED, WORDS
from layerscope.notations import write as write_notation
from tests.codecs import wire
from tests.formats import stored_files
from tests.fuzz import nets
from tests.fuzz.targets import zipped

TEXT = """name: "n" input: "data" input_dim: 1 input_dim: 2 input_dim: 8 input_dim: 8
layer {{ name: "c" type: "Convolution" bottom: "data" top: "c" include {{ phase: TEST }}
  param {{ name: "w" lr_mult: 1 }}
  convolution_param {{ num_output: 4 kernel_size: 3 pad: 1 group: 2 bias_term: false }} }}
layer {{ name: "x" type: "{word}" bottom: "c" bottom: "data" top: "x"
  pooling_param {{ pool: AVE kernel_size: 2 stride: 2 }} inner_product_param {{ num_output: 3 }}
  reshape_param {{ shape {{ dim: 0 dim: -1 }} }} slice_param {{ slice_point: 1 }} }}
"""
TABLE = """| layer | type | kernel | output | params |
| --- | --- | --- | --- | --- |
| data | input | | 1x28x28 | |
| conv1 | conv | 5x5 | 6x24x24 | 156 |
| pool1 | max pool | 2x2 | 6x12x12 | 0 |
| fc | fully connected | | 10 | 8,650 |
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
    return made | {f"net{seed}": nets.net(seed) for seed in range(60)}


def models() -> dict[str, bytes]:
    """The small ONNX models of onnx's own tests, and random ones."""
    from tests.formats.onnx.onnx_models import SMALL
    from tests.fuzz.onnx_nets import net

    made = {path.parent.name: path.read_bytes() for path in SMALL}
    made = {name: data for name, data in made.items() if len(data) < 2048}
    return made | {f"net{seed}": net(seed) for seed in range(400)}


def matlab() -> dict[str, bytes]:
    """Small networks of MatConvNet, simple and as a graph, not compressed."""
    from tests.formats.matconvnet.matfiles import write
    from tests.formats.matconvnet.matnets import Dag, simple_conv

    pool = {"type": "pool", "name": "p", "method": "max", "pool": (2, 2), "stride": 2, "pad": 0}
    layers = [
        simple_conv("c", (3, 3, 2, 2), stride=1, pad=(1, 1, 1, 1)), {"type": "relu", "name": "r"},
        pool, simple_conv("f", (4, 4, 2, 3)), {"type": "softmaxloss", "name": "s"},
    ]  # fmt: skip
    dag = Dag()
    dag.meta = {"inputs": [{"name": "data", "size": (8, 8, 2, 1)}]}
    x = dag.conv("c", "data", (3, 3, 2, 4), pad=(1, 1, 1, 1))
    y = dag.add("r", "ReLU", [dag.bnorm("b", x, 4)], leak=0)
    z = dag.add("p", "Pooling", [dag.add("s", "Sum", [x, y])], method="avg", poolSize=(2, 2))
    dag.add("l", "Loss", [z, "label"], loss="softmaxlog")
    simple = {"layers": layers, "meta": {"inputSize": (8, 8, 2)}}
    made = {"simple": simple, "dag": dag.net, "net": {"net": simple}}
    return {
        name: _written(partial(write, variables=net, version="5")) for name, net in made.items()
    }


def arrays() -> dict[str, bytes]:
    """Small files of safetensors."""
    some = {"a.weight": ("F32", (2, 3)), "a.bias": ("F16", (2,)), "b.n": ("I64", ())}
    made: dict[str, stored_files.Shapes]
    made = {"some": some, "one": {"w": ("U8", (4,))}, "none": {}}
    write = stored_files.safetensors
    return {name: _written(partial(write, arrays=each)) for name, each in made.items()}


def gguf_files() -> dict[str, bytes]:
    """Small files of GGUF."""
    some: stored_files.Shapes
    some = {"a.weight": ("q4_0", (2, 32)), "a.bias": ("f32", (2,)), "b.weight": ("q6_k", (1, 256))}
    metadata = {"general.architecture": "llama", "n": 3, "tokens": ["a", "bc", ""]}
    write = stored_files.gguf
    return {
        "some": _written(partial(write, arrays=some, metadata=metadata)),
        "none": _written(partial(write, arrays={})),
    }


def pickles() -> dict[str, bytes]:
    """Files of torch.save before 1.6, and the pickles of later ones."""
    shapes = {"a.weight": (2, 3), "a.bias": (2,)}
    tensor, text = stored_files.tensor, stored_files.text
    numbers = b"".join(map(stored_files.integer, (0, 2**40)))
    items = {
        "model": stored_files.state_dict({"a.weight": tensor("0", (2, 3)), "b": tensor("1", ())}),
        "epoch": b"I12\n", "list": b"](" + tensor("2", (4, 4)) + numbers + b"e",
        "lr": b"G" + bytes(8), "name": b"(" + text("x") + b"N\x88t",
    }  # fmt: skip
    dtype = stored_files.imported("numpy", "dtype") + b"(" + text("f4") + b"\x89\x88tR"
    numpy = stored_files.imported("numpy.core.multiarray", "_reconstruct") + b"(tR"
    state = stored_files.pair(b"K\x01", stored_files.pair(b"K\x02"), dtype, b"\x89", b"C\x00")
    items["numpy"] = numpy + state + b"b"
    return {
        "legacy": _written(lambda path: stored_files.legacy(path, shapes)),
        "many": b"\x80\x02" + stored_files.state_dict(items) + b".",
        "python": dumps({"a": [1, 2.5, None, "x", (True, b"y")], 3: {4}, "n": 2**70}, 4),
        "text": dumps({"a": [1, 2.5, None, "x"], "b": 2**70}, 0),
    }


def archives() -> dict[str, bytes]:
    """Zip archives of torch.save, stored and compressed, and of torch.export.save."""
    shapes = {"a.weight": (2, 3), "a.bias": (2,)}
    stored = _written(lambda path: stored_files.saved(path, shapes))
    with zipfile.ZipFile(io.BytesIO(stored)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    program, places = programs()["places"].split(b"\n")
    weights = "net/data/weights/"
    return {
        "stored": stored,
        "packed": zipped(members, zipfile.ZIP_DEFLATED),
        "lzma": zipped(members, zipfile.ZIP_LZMA),
        "script": zipped({**members, "archive/code/a.py": b"x", "archive/constants.pkl": b"."}),
        "program": zipped({
            "net/archive_format": b"pt2", "net/models/model.json": program,
            f"{weights}model_weights_config.json": places, f"{weights}weight_0": bytes(432),
        }),
    }  # fmt: skip


def programs() -> dict[str, bytes]:
    """Programs of torch.export, without and with the places of its weights."""
    from tests.formats.test_pt2 import tensor, tiny

    program = json.dumps(tiny()).encode()
    strides = [{"as_int": n} for n in (27, 9, 3, 1)]
    meta = {**tensor(4, 3, 3, 3), "strides": strides, "storage_offset": {"as_int": 0}}
    places = {"config": {"conv.weight": {"path_name": "weight_0", "tensor_meta": meta}}}
    return {"tiny": program, "places": program + b"\n" + json.dumps(places).encode()}


def runs() -> dict[str, bytes]:
    """A kept run of a small network, with the limits of a machine, and its report."""
    from layerscope import Builder, analyze
    from layerscope.export.run_json import write_json
    from layerscope.graph.serialize import to_plain
    from layerscope.report import measurement as kept

    b = Builder("small")
    graph = b.build(b.relu(b.conv(b.input("data", (1, 2, 4, 4)), 2, 3, name="c"), name="r"))
    rate = kept.Rate(1e9, 9e8, 3)
    machine = kept.Machine("cpu", 2, (kept.Peak("fp32", 2, rate, "x"),),
                           (kept.Level("DRAM", 2, 0, rate),))  # fmt: skip
    rows = (
        kept.LayerTime("c", "layer", ("c", "r"), 0.5, 0.5, 0.5, ("n",), ("Conv",), (0.5,)),
        kept.LayerTime("reorder", "layout", ("c",), 0.25, 0.25, 0.25),
        kept.LayerTime("", "unattributed", (), 0.25, 0.25, 0.25),
    )
    times = kept.Timing(1.0, 0.5, 0.25, 0.25, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, (1.0,))
    memory = kept.MemoryUse(1024, 512, 512)
    energy = kept.Energy(5.0, 5.0, "assumed")
    run = kept.Run("onnxruntime", "1", 2, "on", times, rows, memory,
                   (kept.Timer("load", 1, 0.5),), energy, ("r",), ("note",))  # fmt: skip
    found = kept.Measurement("small", to_plain(graph), 1, "fp32", (run,), machine, "1", "2026")
    text = json.dumps(json.loads(write_json(found, analyze(graph))))
    report = json.dumps(json.loads(analyze(graph).to_json()))
    return {"small": text.encode(), "report": report.encode()}


def configs() -> dict[str, bytes]:
    """Configurations of models for text, images and sound."""
    bert = {"model_type": "bert", "num_hidden_layers": 2, "max_position_embeddings": 64,
            "architectures": ["BertModel"], "hidden_size": 32}  # fmt: skip
    vision = {"image_size": 32, "num_channels": 3, "num_layers": 2}
    clip = {"model_type": "clip", "text_config": {"n_layer": 3}, "vision_config": vision}
    sound = {"model_type": "whisper", "num_mel_bins": 80, "max_source_positions": 1500,
             "is_encoder_decoder": True, "attn_implementation": "eager"}  # fmt: skip
    image = {"model_type": "vit", "image_size": [224, 224], "auto_map": {"a": "b"}, "depths": [2]}
    made = {"bert": bert, "clip": clip, "whisper": sound, "vit": image}
    return {name: json.dumps(each).encode() for name, each in made.items()}


def numbers() -> dict[str, bytes]:
    """Quantities, shapes and sizes by name."""
    texts = ("5M", "1.5GiB", "1,000,000", "2_000 kB", "3x224x224", "data=1x3x8x8", "batch=4",
             "mask=", "-12", "4.5e3", "0.001k", "9223372036854775807", "1×2,3")  # fmt: skip
    return {f"n{n}": text.encode() for n, text in enumerate(texts)} | {
        "all": "\n".join(texts).encode()
    }


def budgets() -> dict[str, bytes]:
    """Files with budgets, with every key."""
    from tests.report.test_check import FILE

    more = """[tool.layerscope.budgets]
"a b" = {max-flops = "1.5G", max-weights = "2MiB", proposals = 3, phase = "test"}
[tool.layerscope.budgets.file]
network = "net.onnx"
max-activations = 5
max-counted = 0x10
input = ["data=1x3x8x8", "mask="]
weights = "w"
keep-going = true
allow-unknown = false
dims = {n = 4}
"""
    inline = b'[tool]\nlayerscope = {budgets = {lenet5 = {max-params = 5, input = "1x28x28"}}}\n'
    return {
        "inline": inline,
        "usual": FILE.encode(),
        "more": more.encode(),
        "both": (FILE + more).encode(),
    }


def times() -> dict[str, bytes]:
    """Times of layers in every form of file."""
    boda = (
        "net.args.runtime=0.5\n"
        "per_layer_time['conv1']=per_layer_time.get('conv1',0.0) + 0.25 # tconv__n_1 \n"
        "per_layer_time['conv1__inxp']=1.5e-05 # xpose \n"
        'net.add_nda( "data", NDA("data",1,1,28,28) ) # SOURCE img,chan,y,x\n'
        'net.add_op( Convolution(name="conv1",bot_names=["data"],top_names=["conv1"]) )\n'
    )
    return {
        "csv": b'layer,seconds\nconv1,0.25\n"conv1__inxp",1.5e-05\n',
        "json": b'{"conv1": 0.25,\n "conv1__inxp": 1.5e-05}\n',
        "boda": boda.encode(),
    }


def notes() -> dict[str, bytes]:
    """A small network in every notation that documents are read in, and a table of its own."""
    report = analyze("lenet5")
    names = ("matconvnet", "matconvnet.csv", "matconvnet.latex", "netscope", "backbone", "cs231n",
             "cs231n.md", "layersheet", "boda", "module", "ptflops", "torchsummary", "torchinfo",
             "torchstat", "fvcore", "keras", "keras.box", "darknet", "darknet.2018")  # fmt: skip
    found = {name: write_notation(report, name).encode() for name in names}
    return {**found, "table": TABLE.encode()}


def documents() -> dict[str, bytes]:
    """A small table in every form, with figures, formulas, percentages and a total."""
    rows = (("conv1", "8x8x4", "(3*3*3)*4 = 108", "40%"), ("fc", "10", "2.6K", "60%"))
    head = ("layer", "output", "params", "share")
    lines = [head, ("---",) * 4, *rows, ("total", "", "2,668", "")]
    pipes = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    latex = " \\\\\n".join(" & ".join(line) for line in (head, *rows))
    cells = ["".join(f"<td>{cell}</td>" for cell in line) for line in (head, *rows)]
    return {
        "pipes": pipes.encode(),
        "csv": "\n".join(",".join(f'"{c}"' for c in line) for line in (head, *rows)).encode(),
        "latex": f"\\begin{{tabular}}{{lrrr}}\n{latex}\n\\end{{tabular}}\n".encode(),
        "html": f"<table>{''.join(f'<tr>{line}</tr>' for line in cells)}</table>".encode(),
        "lines": b"INPUT: [8x8x3] memory: 8*8*3=192 weights: 0\nCONV: [8x8x4] memory: 256\n",
        "text": b"Layer (type)  Output Shape  Param #\n=====\nConv2d-1  [-1, 4, 8, 8]  112\n"
        b"ReLU-2  [-1, 4, 8, 8]  0\n=====\nTotal params: 112\n",
        "field": b"| layer | k,p,s | rf | jump |\n|-|-|-|-|\n| conv | 3,1,2 | 3 | 2 |\n",
    }


def _written(write: Callable[[Path], object]) -> bytes:
    """What a writer of files writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.mat")
        write(path)
        return path.read_bytes()


SEEDS: dict[str, Callable[[], dict[str, bytes]]] = {
    "prototxt": texts, "protobuf": messages, "onnx": models, "mat5": matlab, "safetensors": arrays,
    "gguf": gguf_files,
    "pickle": pickles, "zip": archives, "pt2": programs, "run_json": runs, "hf_config": configs,
    "numbers": numbers, "budget": budgets, "times": times,
    "document": notes, "audit": documents,
}  # fmt: skip


def write_seeds(target: str, folder: Path) -> int:
    """Write the files that a target begins from; returns the bytes of the largest."""
    folder.mkdir(parents=True, exist_ok=True)
    files = SEEDS[target]()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return max(map(len, files.values()))


if __name__ == "__main__":
    for target in SEEDS:
        write_seeds(target, Path(sys.argv[1], target))
