"""Why a figure is unknown: which value is missing, and where it would come from."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from layerscope.graph.attributes import Opaque
from layerscope.graph.types import Node

MOST_CAUSES = 3  # that are listed under a table
MOST_STEPS = 100_000  # back through a graph, from a value to where it comes from


class Trace:
    """Finds the graph input or node that a tensor's unknown values or sizes come from."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.inputs: dict[str, str] = {}  # graph input -> what is unknown of it, "" for values only
        self.causes: dict[str, str] = {}  # tensor of unknown shape -> the node that it goes back to
        self._producers: dict[str, int] = {}
        self._seen = 0
        self._found: dict[str, str] = {}

    def reset(self) -> None:
        """Drop cached results, after nodes were removed."""
        self._seen = 0
        self._found.clear()
        self._producers.clear()

    def _producer(self, name: str) -> Node | None:
        for n in range(self._seen, len(self.nodes)):
            for output in self.nodes[n].outputs:
                self._producers[output] = n
        self._seen = len(self.nodes)
        found = self._producers.get(name)
        return self.nodes[found] if found is not None else None

    def origin(self, name: str, stored: Container[str] = ()) -> str:
        """Where values of a tensor come from, as a phrase."""
        passed: list[str] = []
        text = ""
        here = name
        for _ in range(MOST_STEPS):
            if here in self._found:
                text = self._found[here]
                break
            passed.append(here)
            if here in self.causes:
                text = self.causes[here]
                break
            if here in self.inputs:
                text = f"from graph input {here!r}, of which only the shape is known"
                break
            node = self._producer(here)
            if node is None:
                text = f"from {here!r}"
                break
            following = [each for each in node.inputs if each not in stored and self._open(each)]
            if not following:
                text = f"from {node.name} ({_kind(node)})"
                break
            here = following[0]
        for each in passed:
            self._found[each] = text
        return text

    def _open(self, name: str) -> bool:
        """Whether values of a tensor are unknown, judging by the node that computes it."""
        producer = self._producer(name)
        return producer is None or producer.op != "constant"

    def value(self, tensor: str, formal: str, stored: Container[str] = ()) -> str:
        """Why the value of an input is unknown; `formal` is its name in the operator's schema."""
        if tensor in self.inputs:
            return f"{formal} is unknown: the values of graph input {tensor!r} are run-time data"
        producer = self._producer(tensor)
        by = f", computed by {producer.name} ({_kind(producer)})" if producer is not None else ""
        origin = self.origin(tensor, stored)
        end = f" {origin}" if origin else ""
        return f"{formal} is unknown: the values of {tensor!r}{by}{end}"

    def shape(self, tensor: str) -> str:
        """Why the shape of a tensor is unknown."""
        cause = self.causes.get(tensor) or self.inputs.get(tensor, "")
        return f"the shape of {tensor!r} is unknown{': ' + cause if cause else ''}"


def summary(nodes: Sequence[Node], causes: Mapping[str, str]) -> list[str]:
    """Notes on why layers have no figures: each root cause, and how many layers depend on it."""
    found: dict[str, int] = {}
    for node in nodes:
        if isinstance(node.attributes, Opaque) and node.attributes.why and node.times:
            own = f"{node.name} ({_kind(node)}): {node.attributes.why}"
            cause = causes.get(node.outputs[0], own)
            found[cause] = found.get(cause, 0) + 1
    most = sorted(found.items(), key=lambda pair: -pair[1])
    notes = []
    for cause, count in most[:MOST_CAUSES]:
        rest = f"; {count - 1:,} more layers need it" if count > 2 else "; 1 more layer needs it"
        rest = rest if count > 1 else ""
        notes.append(f"unknown: {cause}{rest}")
    if len(most) > MOST_CAUSES:
        notes.append(f"unknown for {len(most) - MOST_CAUSES:,} other reasons: --columns name,note")
    return notes


def _kind(node: Node) -> str:
    return node.source.op if node.source is not None and node.source.op else node.op


GENERATES = "it runs its decoder until a stop token: the number of tokens is run-time data"
COMPILED = "it is a program compiled for one engine, whose operations are not in the file"
PACKED = "the number of tokens of each sequence is an input: run-time data"
OWN_LAYOUT = "its arrays have a layout of cuBLASLt's own, which is not documented"
# Why operators have no rule, by domain and name.
NO_RULES: Mapping[tuple[str, str], str] = {
    ("ai.onnx.preview.training", "Gradient"): "what it differentiates is the graph around it, "
    "from xs to y; show that graph with --train instead",
    ("", "ATen"): "it calls an operator of PyTorch that only its attribute names",
    ("", "GRUUnit"): "an experimental operator whose definition was removed from ONNX",
    **{("com.microsoft", op): GENERATES for op in (
        "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch",
    )},
    **{("com.microsoft", op): COMPILED for op in ("EPContext", "Snpe")},
    **{("com.microsoft", op): PACKED for op in (
        "PagedAttention", "SparsePagedAttention", "PackedSparseAttentionIndexer",
        "VarlenCausalConvWithState", "VarlenNGramHashMapping", "GatedDeltaNet",
    )},
    **{("com.microsoft", op): OWN_LAYOUT for op in (
        "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization",
        "QOrderedLongformerAttention", "QOrderedMatMul",
    )},
    **{("com.microsoft", op): "it has blocks of a floating point format whose layout an attribute "
       "leaves to the device" for op in ("QuantizeBFP", "DequantizeBFP")},
    **{("com.microsoft", op): "the keys of a query are chosen by run-time data" for op in (
        "DynamicSparseAttention", "SparseAttentionIndexer",
    )},
    ("com.microsoft", "LongformerAttention"): "which tokens attend to all others is run-time data",
    ("com.microsoft", "DecoderAttention"): "flags that are inputs choose between self and cross "
    "attention, with a cache or without",
    ("com.microsoft", "BifurcationDetector"): "the number of tokens that agree is run-time data",
    ("com.microsoft", "DynamicTimeWarping"): "the length of the cheapest path is run-time data",
    ("com.microsoft", "ConvTransposeWithDynamicPads"): "the pads are run-time data",
    ("com.microsoft", "SparseToDenseMatMul"): "how many elements are not zero is run-time data",
    ("com.microsoft", "WordConvEmbedding"): "how many characters a word has is run-time data",
    ("com.microsoft", "AttnLSTM"): "only the code of ONNX Runtime defines what its attention "
    "does at each step",
    ("com.microsoft", "SampleOp"): "an example of how to write operators, not one of a network",
}  # fmt: skip
