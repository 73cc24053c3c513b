"""Caffe's networks: headers, data layers, phases, blobs in place, names, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope import analyze, load
from layerscope.cli import run
from layerscope.errors import FormatError, ShapeError, UsageError
from layerscope.formats import recognise
from layerscope.formats.caffe.layers import LAYERS
from layerscope.formats.caffe.names import ALIASES, NUMBERED, WORDS, key
from layerscope.formats.caffe.prototxt import recognise as is_prototxt
from layerscope.graph.types import Source
from tests.formats.caffe.caffe_nets import DATA, layer, net

CONV = "convolution_param { num_output: 4 kernel_size: 3 }"


def shapes(text: str, **options: object) -> dict[str, tuple[int, ...] | None]:
    return {tensor.name: tensor.shape for tensor in net(text, **options).inputs}


# -- what goes in


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("input: 'x' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 9", {"x": (1, 3, 8, 9)}),
        ("input: 'x' input_shape { dim: 1 dim: 3 }", {"x": (1, 3)}),
        ("input: 'x' input_shape { dim: [4, 5, 6] }", {"x": (4, 5, 6)}),
        (
            "input: 'x' input: 'z' input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 9 "
            "input_dim: 2 input_dim: 1 input_dim: 1 input_dim: 1",
            {"x": (1, 3, 8, 9), "z": (2, 1, 1, 1)},
        ),
        (
            "input: 'x' input_shape { dim: 1 } input: 'z' input_shape { dim: 2 }",
            {"x": (1,), "z": (2,)},
        ),
        ("input { name: 'x' dim: 1 dim: 2 }", {"x": (1, 2)}),
        ("input { name: 'x' shape { dim: 3 } }", {"x": (3,)}),
        (
            layer("Input", "input_param { shape { dim: 1 dim: 3 } }", "", "x z"),
            {"x": (1, 3), "z": (1, 3)},
        ),
        (
            layer("Input", "input_param { shape { dim: 1 } shape { dim: 2 } }", "", "x z"),
            {"x": (1,), "z": (2,)},
        ),
        (
            layer("Data", "transform_param { crop_size: 32 } data_param { batch_size: 64 }", "",
                  "x l"),
            {"x": (1, 3, 32, 32), "l": (1,)},
        ),
        (layer("Data", "data_param { crop_size: 32 }", "", "x"), {"x": (1, 3, 32, 32)}),
        (
            layer("Data", "transform_param { crop_h: 3 crop_w: 5 force_gray: true }", "", "x"),
            {"x": (1, 1, 3, 5)},
        ),
        (
            layer("data", "input_param { shape { dim: 5 dim: 3 dim: 4 dim: 4 } }", "", "x"),
            {"x": (5, 3, 4, 4)},
        ),
        (
            layer("ImageData", "image_data_param { new_height: 6 new_width: 7 }", "", "x l"),
            {"x": (1, 3, 6, 7), "l": (1,)},
        ),
        (
            layer("ImageData", "image_data_param { new_height: 6 new_width: 7 is_color: false }",
                  "", "x"),
            {"x": (1, 1, 6, 7)},
        ),
        (
            layer("WindowData", "window_data_param { crop_size: 9 }", "", "x l"),
            {"x": (1, 3, 9, 9), "l": (1,)},
        ),
        (
            layer("MemoryData",
                  "memory_data_param { batch_size: 9 channels: 2 height: 3 width: 4 }", "", "x l"),
            {"x": (1, 2, 3, 4), "l": (1,)},
        ),
        (
            layer("DummyData", "dummy_data_param { shape { dim: 2 dim: 3 } }", "", "x z"),
            {"x": (2, 3), "z": (2, 3)},
        ),
        (
            layer("DummyData", "dummy_data_param { num: 1 num: 2 channels: 3 height: 4 width: 5 }",
                  "", "x z"),
            {"x": (1, 3, 4, 5), "z": (2, 3, 4, 5)},
        ),
        (
            layer("AnnotatedData",
                  "transform_param { resize_param { height: 30 width: 40 } }", "", "x"),
            {"x": (1, 3, 30, 40)},
        ),
        (
            layer("ImageSegData", "transform_param { crop_size: 321 }", "", "x"),
            {"x": (1, 3, 321, 321)},
        ),
        (layer("VideoData", "transform_param { crop_size: 112 }", "", "x"), {"x": None}),
    ],
)  # fmt: skip
def test_shapes_of_inputs(text: str, told: dict[str, tuple[int, ...]]) -> None:
    reader = "".join(layer("Spy", name=f"spy {name}", bottom=name, top=f"y{name}") for name in told)
    assert shapes(f"{text} {reader}") == told


def test_inputs_point_back_to_their_layer() -> None:
    text = "input: 'a' input_shape { dim: 1 }\n\n" + layer(
        "MemoryData", "memory_data_param { channels: 1 height: 2 width: 3 }", "", "x l", "mem"
    )
    graph = net(text + layer("Spy", bottom="a x l"))
    assert [t.source for t in graph.inputs] == [
        Source("net.prototxt", 1, column=1),
        *[Source("net.prototxt", 3, "MemoryData", "mem", 7)] * 2,
    ]
    assert str(graph.inputs[1].source) == "net.prototxt:3"


@pytest.mark.parametrize("kind", ["HDF5Data", "Data", "Python", "DenseImageData", "Input"])
def test_an_unknown_shape_has_to_be_given(kind: str) -> None:
    graph = net("\n" + layer(kind, "", "", "x", "d") + layer("Convolution", CONV, "x"))
    with pytest.raises(FormatError) as error:
        analyze(graph)
    assert str(error.value) == (
        "net.prototxt:2: the file tells no shape of input 'x', which it reads; give it with "
        "--input x=1x3x224x224 or what it is"
    )
    report = analyze(graph, input={"x": (1, 3, 8, 8)})
    assert report.by_name["it"].output == (1, 4, 6, 6)
    assert analyze(graph, input=(2, 3, 8, 8)).by_name["it"].output == (2, 4, 6, 6)


def test_labels_of_unknown_shape_are_not_needed() -> None:
    text = layer("HDF5Data", "", "", "x l", "d") + layer("SoftmaxWithLoss", "", "x l")
    graph = net(text)
    assert [t.name for t in graph.inputs] == ["x"]
    assert analyze(graph, input=(4, 10)).by_name["it"].output == ()


def test_labels_that_an_unknown_layer_makes_are_not_needed() -> None:
    text = DATA + layer("AnchorTarget", top="labels", name="anchors")
    report = analyze(net(text + layer("SoftmaxWithLoss", "", "data labels")))
    assert report.by_name["it"].status == "exact"
    assert report.by_name["anchors"].status == "unknown"


def test_a_batch_is_bound_to_labels_too() -> None:
    text = layer("Data", "transform_param { crop_size: 4 }", "", "x l", "d")
    text += layer("InnerProduct", "inner_product_param { num_output: 3 }", "x", "fc", "fc")
    graph = net(text + layer("SoftmaxWithLoss", "", "fc l"))
    assert analyze(graph, batch=8).tensors["l"].shape == (8,)


# -- phases


RULED = """
layer {{ name: 'd' type: 'Input' top: 'x' input_param {{ shape {{ dim: 1 dim: 2 }} }} }}
layer {{ name: 'it' type: 'ReLU' bottom: 'x' top: 'y' {rules} }}
layer {{ name: 'end' type: 'ReLU' bottom: 'x' top: 'z' }}
{state}
"""


@pytest.mark.parametrize(
    ("rules", "state", "test", "train"),
    [
        ("", "", True, True),
        ("include { phase: TRAIN }", "", False, True),
        ("include: { phase: 1 }", "", True, False),
        ("exclude { phase: TRAIN }", "", True, False),
        ("include { phase: TRAIN } include { phase: TEST }", "", True, True),
        ("include { min_level: 1 }", "", False, False),
        ("include { min_level: 1 max_level: 3 }", "state { level: 2 }", True, True),
        ("include { max_level: 1 }", "state { level: 2 }", False, False),
        ("include { stage: 'deploy' }", "", False, False),
        ("include { stage: 'deploy' }", "state { stage: 'deploy' }", True, True),
        ("include { stage: 'a' stage: 'b' }", "state { stage: 'a' }", False, False),
        ("include { not_stage: 'deploy' }", "", True, True),
        ("include { not_stage: 'deploy' }", "state { stage: 'deploy' }", False, False),
        ("include { phase: TEST stage: 'val' }", "state { stage: 'val' }", True, False),
        ("exclude { stage: 'deploy' }", "state { stage: 'deploy' }", False, False),
        ("phase: TRAIN", "", True, True),  # tells how it runs, not whether
        ("include { }", "", True, True),
        ("exclude { }", "", False, False),
    ],
)
def test_rules_of_phases(rules: str, state: str, test: bool, train: bool) -> None:
    text = RULED.format(rules=rules, state=state)
    for phase, there in (("test", test), ("train", train)):
        names = [node.name for node in net(text, phase=phase).nodes]
        assert ("it" in names) == there
    assert [n.name for n in net(text).nodes] == [n.name for n in net(text, phase="test").nodes]


def test_a_file_of_stages_is_taken_in_the_one_of_its_phase() -> None:
    shape = "input_param { shape { dim: 1 dim: 2 } }"
    text = layer("Input", shape + "include { stage: 'deploy' }", "", "x", "d")
    text += layer(
        "Data", "include { stage: 'train' } transform_param { crop_size: 4 }", "", "x", "t"
    )
    text += layer("ReLU", "", "x") + layer("TanH", "exclude { stage: 'deploy' }", "x", "z", "z")
    assert [node.name for node in net(text).nodes] == ["it"]
    assert [node.name for node in net(text, phase="train").nodes] == ["it", "z"]
    with pytest.raises(FormatError, match="no inputs in phase test"):
        net(layer("Input", shape + "include { stage: 'other' }", "", "x", "d"))


def test_include_and_exclude_do_not_go_together() -> None:
    text = RULED.format(rules="include { phase: TEST }\n exclude { phase: TRAIN }", state="")
    with pytest.raises(FormatError, match=r"net.prototxt:4:10: it: include and exclude, expected"):
        net(text)


# -- blobs and names


def test_layers_in_place_make_tensors_of_their_own() -> None:
    text = DATA + layer("Convolution", CONV, top="conv", name="conv")
    text += layer("BatchNorm", "", "conv", "conv", "bn") + layer("ReLU", "", "conv", "conv", "relu")
    text += layer("Pooling", "pooling_param { global_pooling: true }", "conv", "pool", "pool")
    graph = net(text)
    assert [(n.inputs, n.outputs) for n in graph.nodes] == [
        (("data",), ("conv",)),
        (("conv",), ("conv:bn",)),
        (("conv:bn",), ("conv:relu",)),
        (("conv:relu",), ("pool",)),
    ]
    assert graph.nodes[2].attributes.in_place
    assert graph.outputs == ("pool",)


def test_a_branch_before_a_layer_in_place_reads_what_was_then() -> None:
    text = DATA + layer("ReLU", name="a", top="a") + layer("Sigmoid", "", "a", "b", "b")
    text += layer("TanH", "", "a", "a", "c") + layer("Eltwise", "", "a b", "d", "d")
    reads = {node.name: node.inputs for node in net(text).nodes}
    assert reads["b"] == ("a",)
    assert reads["d"] == ("a:c", "b")


def test_several_tops_and_what_is_silenced() -> None:
    text = DATA + layer("Slice", "slice_param { slice_point: 2 slice_point: 3 }", top="p q r")
    graph = net(text + layer("Silence", "", "q", "", "hush") + layer("ReLU", "", "r", "s", "s"))
    assert graph.nodes[0].outputs == ("p", "q", "r")
    assert graph.outputs == ("p", "s")
    shape = analyze(graph).tensors
    assert [shape[name].shape for name in "pqr"] == [(2, 2, 9, 7), (2, 1, 9, 7), (2, 3, 9, 7)]


def test_names_are_made_unique_and_never_empty() -> None:
    text = DATA + layer("ReLU", name="r", top="a") + layer("ReLU", "", "a", "b", "r")
    text += layer("ReLU", "", "b", "c", "r#2") + "\nlayer { type: 'ReLU' bottom: 'c' top: 'd' }"
    graph = net(text)
    assert [node.name for node in graph.nodes] == ["r", "r#2", "r#2#2", "ReLU@2"]
    source = graph.nodes[1].source
    assert source is not None
    assert (source.line, source.op, source.name) == (1, "ReLU", "r")
    assert text[source.column - 1 :].startswith("{ name: 'r' type: 'ReLU'")


def test_scopes_follow_the_slashes_of_names() -> None:
    text = DATA + layer("Convolution", CONV, name="a/b/conv", top="a/b/conv")
    graph = net("name: 'slashes' " + text)
    assert graph.nodes[0].scope == ("a", "b")
    assert dict(graph.modules) == {"": "slashes", "a": "", "a/b": "", "a/b/conv": ""}


def test_named_params_are_shared() -> None:
    named = "param { name: 'w' lr_mult: 1 } param { name: 'b' }"
    text = DATA + layer("Convolution", CONV + named, top="a", name="a")
    text += layer("Convolution", CONV + named, top="b", name="b")
    text += layer(
        "Convolution", CONV + "param { lr_mult: 1 } param { name: 'b' }", top="c", name="c"
    )
    report = analyze(net(text))
    assert [layer.params for layer in report.layers] == [4 * 6 * 9 + 4, 0, 4 * 6 * 9]
    assert report.totals.params == 2 * 4 * 6 * 9 + 4


def test_old_files_share_by_strings() -> None:
    both = (
        "layers { type: INNER_PRODUCT inner_product_param { num_output: 2 } param: 'w' param: 'b' "
    )
    text = DATA + both + "bottom: 'data' top: 'a' name: 'a' }"
    report = analyze(net(text + both + "bottom: 'data' top: 'b' name: 'b' }"))
    assert [layer.params for layer in report.layers] == [2 * 6 * 63 + 2, 0]


def test_a_convolution_of_two_bottoms_shares_its_weights() -> None:
    text = DATA + layer("ReLU", name="r", top="r")
    report = analyze(net(text + layer("Convolution", CONV, "data r", "a b")))
    first, second = report.layers[1:]
    assert (first.name, second.name) == ("it", "it/2")
    assert (first.output, second.output) == ((2, 4, 7, 5), (2, 4, 7, 5))
    assert (first.params, second.params) == (4 * 6 * 9 + 4, 0)


def test_parameters_are_stored_arrays() -> None:
    text = DATA + layer("Parameter", "parameter_param { shape { dim: 6 } }", "", "p", "p")
    report = analyze(net(text + layer("Scale", "", "data p")))
    assert report.totals.params == 6
    assert report.by_name["it"].output == (2, 6, 9, 7)


# -- generations of the format


def test_the_forms_of_three_generations_are_one_network() -> None:
    new = DATA + layer("Convolution", CONV, top="c", name="c") + layer("ReLU", "", "c", "c", "r")
    old = DATA + (
        f"layers {{ name: 'c' type: CONVOLUTION bottom: 'data' top: 'c' {CONV} }}"
        "layers { name: 'r' type: RELU bottom: 'c' top: 'c' }"
    )
    by_number = old.replace("CONVOLUTION", "4").replace("RELU", "18")
    oldest = DATA + (
        "layers { layer { name: 'c' type: 'conv' num_output: 4 kernelsize: 3 } "
        "bottom: 'data' top: 'c' }"
        "layers { layer { name: 'r' type: 'relu' } bottom: 'c' top: 'c' }"
    )
    graphs = [net(text) for text in (new, old, by_number, oldest)]
    told = [[(n.name, n.op, n.inputs, n.attributes) for n in graph.nodes] for graph in graphs]
    assert told[0] == told[1] == told[2] == told[3]
    assert [graph.nodes[0].source.op for graph in graphs if graph.nodes[0].source] == [
        "Convolution", "convolution", "4", "conv",
    ]  # fmt: skip


def test_the_oldest_form_pads_by_a_layer() -> None:
    text = DATA + "layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'data' top: 'p' }"
    assert analyze(net(text)).by_name["p"].output == (2, 6, 13, 11)


def test_both_forms_in_one_file_keep_their_order() -> None:
    text = DATA + "layers { name: 'a' type: RELU bottom: 'data' top: 'a' }"
    text += (
        layer("ReLU", "", "a", "b", "b") + "layers { name: 'c' type: RELU bottom: 'b' top: 'c' }"
    )
    assert [node.name for node in net(text).nodes] == ["a", "b", "c"]


def test_every_word_is_in_the_table() -> None:
    no_nodes = {"filter", "lstmunit", "recurrent", "parameter", "silence", "hdf5output"}
    data = {key(word) for word in WORDS if word.endswith("Data") or word in ("Input", "Data")}
    assert {key(word) for word in WORDS} - no_nodes - data <= set(LAYERS)
    old = {key(word) for word in NUMBERED} - {"none"}
    assert old - no_nodes - data <= set(LAYERS)
    assert set(ALIASES.values()) <= set(LAYERS) | data


# -- what cannot be counted


def test_unknown_types_keep_their_name_and_line() -> None:
    text = DATA + "\n" + layer("Spy", "spy_param { pad: 3 }", "data data", "y z")
    graph = net(text + layer("ReLU", "", "y", "w", "r"))
    node = graph.nodes[0]
    assert (node.op, node.outputs, node.source) == (
        "Spy",
        ("y", "z"),
        Source("net.prototxt", 2, "Spy", column=7),
    )
    report = analyze(graph)
    assert report.by_name["it"].status == report.by_name["r"].status == "unknown"
    assert "Spy" in str(report.coverage)


def test_an_unknown_type_named_like_an_op_is_no_op() -> None:
    report = analyze(net(DATA + layer("matmul")))
    assert report.layers[0].op == "caffe.matmul"
    assert report.layers[0].status == "unknown"


def test_tops_that_no_rule_gives_are_unknown() -> None:
    graph = net(DATA + layer("ReLU", top="y mask"))
    assert [(n.name, n.op, n.outputs) for n in graph.nodes] == [
        ("it", "relu", ("y",)),
        ("it/rest", "ReLU top", ("mask",)),
    ]


# -- errors


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1:1: no layers, expected layer { … }"),
        ("net: 'a' base_lr: 0.1",
         "1:1: a solver and no network; the file it names under net is one"),
        ("layer: 3", "1:8: layer '3', expected a message"),
        (DATA + "\nlayer { name: 'a' }", "2:7: a: no type"),
        (
            DATA + "\n" + layer("ReLU", bottom="dta"),
            "2:41: it: reads 'dta', which no layer before it produces; did you mean 'data'? "
            "(--keep-going reads on)",
        ),
        (
            DATA + layer("ReLU", top="a", name="r") + "\n" + layer("TanH", top="a"),
            "2:53: it: produces 'a', which r has produced (--keep-going reads on)",
        ),
        (DATA + "\n" + layer("Convolution", "convolution_param { kernel_size: 3 }"),
         "2:82: it: no num_output"),
        (DATA + layer("Convolution", "\nconvolution_param { num_output: 0 kernel_size: 3 }"),
         "2:33: it: num_output 0, expected at least 1"),
        (DATA + layer("Convolution", "\nconvolution_param { num_output: 4 }"),
         "2:19: it: no kernel_size"),
        (DATA + layer("Convolution", "\nconvolution_param { num_output: 4 kernel_size: 0 }"),
         "2:48: it: kernel_size 0, expected at least 1"),
        (DATA + layer("Convolution", "\nconvolution_param { num_output: 4 pad: 2147483648 }"),
         "2:19: it: no kernel_size"),
        (DATA + layer("Pooling", "\npooling_param { kernel_size: 2147483648 }"),
         "2:30: it: kernel_size 2147483648, expected at most 2147483647"),
        (DATA + layer("Pooling", "\npooling_param { kernel_h: 2 kernel_w: 2 stride: -1 }"),
         "2:49: it: stride -1, expected at least 1"),
        (DATA + layer("Pooling", f"\npooling_param {{ kernel_size: 2 pad: {2**63} }}"),
         f"2:37: pad {2**63}, expected at most 2^63 - 1"),
        (DATA + layer("Pooling", f"\npooling_param {{ kernel_size: {'9' * 500} }}"),
         f"2:30: kernel_size {'9' * 60}…, expected at most 400 digits, not 500"),
        (DATA + layer("Convolution", "\nconvolution_param { num_output: many }"),
         "2:33: num_output many, expected a whole number"),
        (DATA + layer("Slice", "slice_param { slice_point: 4\n slice_point: 2 }", top="p q r"),
         "2:15: it: slice points [4, 2], expected each above the last"),
        ("input: 'x' input_dim: 0", "1:23: input_dim 0, expected 1 to 2147483647"),
        ("input: 'x' input: 'y' input_dim: 1 input_dim: 2", "1:47: 1 shapes for 2 inputs"),
    ],
)  # fmt: skip
def test_errors_say_where(text: str, told: str) -> None:
    if text.startswith("input: 'x'"):
        text += " " + layer("ReLU", bottom="x")
    with pytest.raises(FormatError) as error:
        net(text)
    said = str(error.value)
    assert said.startswith("net.prototxt:")
    assert said == f"net.prototxt:{told}"
    if not told.startswith("1:"):  # columns of what is long are not counted by hand
        assert said == f"net.prototxt:{told}"


def test_shapes_that_do_not_agree_say_where() -> None:
    graph = net(
        DATA + "\n" + layer("Convolution", "convolution_param { num_output: 4 kernel_size: 11 }")
    )
    with pytest.raises(
        ShapeError, match=r"^net.prototxt:2: it: kernel 11x11 does not fit input 9x7"
    ):
        analyze(graph)


def test_going_on_leaves_out_what_nothing_produces() -> None:
    text = DATA + layer("Eltwise", bottom="data gone") + layer("ReLU", "", "lost", "z", "r")
    graph = net(text, keep_going=True)
    assert graph.nodes[0].inputs == ("data",)
    assert [(t.name, t.shape) for t in graph.inputs] == [("data", (2, 6, 9, 7)), ("lost", None)]
    again = net(DATA + layer("ReLU", top="a", name="r") + layer("TanH", top="a"), keep_going=True)
    assert [node.outputs for node in again.nodes] == [("a",), ("a:it",)]


def test_what_was_taken_for_granted_is_told() -> None:
    told = "transform_param { crop_size: 4 } data_param { batch_size: 64 }"
    text = layer("Data", told, "", "x l", "d") + layer("Eltwise", "", "x gone")
    assert net(text, keep_going=True, phase="train").notes == (
        "phase train",
        "d asks for batches of 64; one is read, or --batch N",
        "left out: it reads 'gone', which nothing produces",
    )
    assert net(DATA + layer("ReLU")).notes == ()


def test_options_are_looked_through(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="phase 'both', expected test or train"):
        load("x.prototxt", phase="both")
    with pytest.raises(UsageError, match="0 proposals, expected at least 1"):
        load("x.prototxt", proposals=0)
    with pytest.raises(UsageError, match="unknown option 'phases'; did you mean phase"):
        load("x.prototxt", phases="test")
    with pytest.raises(UsageError, match="phase has no effect: vgg16 is a zoo network"):
        analyze("vgg16", phase="train")
    with pytest.raises(UsageError, match="phase needs the name of a file"):
        analyze(load("vgg16"), phase="train")


def test_a_file_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train_val.prototxt"
    loss = layer("SoftmaxWithLoss", "include { phase: TRAIN }", "fc l", "loss", "loss")
    path.write_text(
        layer("Data", "transform_param { crop_size: 4 }", "", "x l", "d")
        + layer("InnerProduct", "inner_product_param { num_output: 3 }", "x", "fc", "fc") + loss
    )  # fmt: skip
    csv = ["show", str(path), "--as", "csv", "--no-stamp"]
    assert run([*csv, "--columns", "name"]) == 0
    assert capsys.readouterr().out.split() == ["name", "fc"]
    told = ["--phase", "train", "--batch", "4"]
    assert run([*csv, "--columns", "name,macs", *told]) == 0
    assert capsys.readouterr().out.split() == ["name,macs", "fc,576", "loss,0"]
    assert run(["show", str(path), "--phase", "both"]) == 2
    assert "expected test or train" in capsys.readouterr().err


# -- files, and any bytes


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"name: 'x'\nlayer {", True),
        (b"# note\n\nlayers{ name: 'x'", True),
        (b'name:"x" layer{', True),
        (b"\xef\xbb\xbfinput: 'data'\n", True),
        (b"input_shape { dim: 1 }", True),
        (b"layer: <", True),
        (b"name: 'x'\n# layer {\n", False),
        (b"\x0a\x05alex\x00", False),
        (b"# A note\n\nSome words on a layer { that } is\n", False),
        (b"| ID | Name | layer {", False),
        (b"", False),
    ],
)
def test_text_is_recognised(head: bytes, known: bool) -> None:
    assert is_prototxt(head) == known
    if known:
        found = recognise("a.unheard-of", head)
        assert found is not None
        assert found.name == "caffe"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(FormatError, match=r"^nowhere.prototxt: No such file"):
        load("nowhere.prototxt")
