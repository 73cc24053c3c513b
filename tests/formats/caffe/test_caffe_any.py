"""Any file is a graph or a named error, and any graph of one is analyzed or refused by name."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerscope import LayerscopeError, analyze
from layerscope.formats.caffe.names import NUMBERED, WORDS
from tests.formats.caffe.caffe_fork import Fork
from tests.formats.caffe.caffe_forks import FORKS
from tests.formats.caffe.caffe_nets import DATA, layer, net

KINDS = sorted({*WORDS, *NUMBERED, "Spy", "data", "conv"})
FIELDS = [
    "num_output", "kernel_size", "kernel_h", "pad", "stride", "group", "axis", "dim", "pool",
    "slice_point", "order", "shape", "offset", "tiles", "coeff", "operation", "global_pooling",
    "local_size", "crop_size", "pooled_h", "top_k", "end_axis", "num_axes", "pyramid_height",
    "input_dim", "min_size", "aspect_ratio", "zoom_factor", "num_classes", "scale", "module",
    "output_dim", "group_size", "bias_term", "base", "shift", "height", "width", "pad_beg",
]  # fmt: skip
VALUES = [
    "0", "1", "2", "3", "-1", "1.5", "nan", "inf", "true", "MAX", "'x'", "99999999999",
    "{ dim: 2 }", "{ dim: -1 }", "1e308", "0x10", str(2**64),
]  # fmt: skip
PARAMS = [
    f"{word}_param"
    for word in (
        "convolution", "pooling", "inner_product", "slice", "concat", "reshape", "permute", "crop",
        "tile", "reduction", "argmax", "spp", "interp", "eltwise", "input", "transform", "lrn",
        "memory_data", "prior_box", "detection_output", "roi_pooling", "psroi_pooling", "embed",
        "recurrent", "flatten", "scale", "bias", "power", "exp", "log", "upsample", "dummy_data",
        "parameter", "python", "softmax", "mvn", "norm", "shuffle_channel", "reorg",
    )
]  # fmt: skip
FOR_KIND = {"innerproduct": "inner_product_param", "priorbox": "prior_box_param"}
fields = st.lists(st.tuples(st.sampled_from(FIELDS), st.sampled_from(VALUES)), max_size=5)
blobs = st.lists(st.sampled_from(["data", "a", "b", "c"]), max_size=3)


@st.composite
def networks(draw: st.DrawFn) -> str:
    """A file of layers of any type, told anything, most of it meant for their type."""
    text = draw(st.sampled_from([DATA, "input: 'data' input_dim: 1 ", ""]))
    for n in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(KINDS))
        own = FOR_KIND.get(kind.lower(), f"{kind.lower()}_param")
        params = draw(st.lists(st.sampled_from([own, own, *PARAMS]), max_size=3))
        told = " ".join(
            f"{param} {{ {' '.join(f'{field}: {value}' for field, value in draw(fields))} }}"
            for param in params
        )
        text += layer(kind, told, " ".join(draw(blobs)), " ".join(draw(blobs)), f"l{n % 3}")
    return text


def tried(text: str, **options: object) -> str:
    """What is said against a network; nothing if it is fine. Any other exception is a fault."""
    try:
        graph = net(text, **options)
        analyze(graph)
        analyze(graph, like="netscope").to_notation("netscope")
    except LayerscopeError as error:
        return str(error)
    return ""


@given(networks(), st.booleans(), st.sampled_from(["test", "train"]))
@settings(max_examples=1500)
def test_any_network_is_a_graph_or_a_named_error(text: str, keep_going: bool, phase: str) -> None:
    said = tried(text, keep_going=keep_going, phase=phase)
    assert "\n" not in said


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_are_a_graph_or_a_named_error(data: bytes) -> None:
    assert tried(data.decode("latin-1")).startswith("net.prototxt:")


# -- files of forks, changed here and there


OTHERS = [
    "0", "1", "-1", "7", "99999999999", "1e9", "nan", "inf", "true", "'x'", "MAX", "{}", "[]",
]  # fmt: skip
WRITTEN = " ".join(fork.text for fork in FORKS)
NAMES = sorted(set(re.findall(r"(\w+):", WRITTEN)))
TYPES = sorted(set(re.findall(r'type: "(\w+)"', WRITTEN)))


def changed(text: str, source: Random) -> str:
    """A text with another value, another type, a bottom less, a field twice or one more."""
    change = source.choice(("value", "type", "bottom", "twice", "more"))
    pattern = {
        "value": r"(?<=: )-?[\w.]+", "type": r'(?<=type: ")\w+', "bottom": r'bottom: "\w+"',
        "twice": r"\w+: -?[\w.]+", "more": r"(?<=_param {)",
    }[change]  # fmt: skip
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    place = source.choice(found)
    put: str = {
        "value": source.choice(OTHERS),
        "type": source.choice(TYPES),
        "bottom": "",
        "twice": f"{place[0]} {place[0]}",
        "more": f" {source.choice(NAMES)}: {source.choice(OTHERS)} ",
    }[change]
    return text[: place.start()] + put + text[place.end() :]


@pytest.mark.parametrize("fork", FORKS, ids=lambda fork: fork.name)
def test_a_file_of_a_fork_that_is_changed(fork: Fork) -> None:
    source = Random(fork.name)
    for number in range(40):
        text = fork.text.removeprefix("\ufeff")
        for _ in range(source.randint(1, 4)):
            text = changed(text, source)
        said = tried(text, keep_going=number % 3 == 0, phase=source.choice(["test", "train"]))
        assert "\n" not in said
        assert len(said) < 1000
