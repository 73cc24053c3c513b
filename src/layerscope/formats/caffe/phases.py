"""Which layers belong to a phase: Caffe's include and exclude rules (NetStateRule)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.codecs.message import Message, UnknownWord
from layerscope.errors import FormatError

PHASES = ("TRAIN", "TEST")
STAGES = {"TRAIN": ("train",), "TEST": ("deploy", "val", "test")}


class NetState(Struct, frozen=True):
    """Phase, level and stages that rules are matched with."""

    phase: str
    level: int = 0
    stages: frozenset[str] = frozenset()


def state_of(net: Message, phase: str, layers: Sequence[Message] = ()) -> NetState:
    """The phase with the level and stages that the file itself sets.

    In a file that has an input only in some stage, as those of DIGITS have, the stage is the one
    that belongs to the phase.
    """
    own = net.message("state")
    state = NetState(phase.upper(), own.whole("level"), frozenset(own.texts("stage")))
    sources = [layer for layer in layers if "bottom" not in layer]
    if "input" in net or any(included(layer, state) for layer in sources):
        return state
    for stage in STAGES[state.phase]:
        within = NetState(state.phase, state.level, state.stages | {stage})
        if any(included(layer, within) for layer in sources):
            return within
    return state


def included(layer: Message, state: NetState) -> bool:
    """Whether a layer is in the network: if any rule of `include` is met, or none of `exclude`.

    As in Caffe, the field `phase` of a layer itself does not leave it out.
    """
    include, exclude = layer.messages("include"), layer.messages("exclude")
    if include and exclude:
        raise _both_rules_error(layer)
    if include:
        return any(_meets(rule, state) for rule in include)
    return not any(_meets(rule, state) for rule in exclude)


def _both_rules_error(layer: Message) -> FormatError:
    return layer.error(
        f"{layer.text('name')}: include and exclude, expected one of them", "exclude"
    )


def foreign_phases(layer: Message) -> list[str]:
    """Phases in the rules of a layer that Caffe does not have."""
    rules = (*layer.messages("include"), *layer.messages("exclude"))
    found = [rule.text("phase") for rule in rules if "phase" in rule]
    return [word[:60] for word in found if word.upper() not in PHASES and word not in ("0", "1")]


def _meets(rule: Message, state: NetState) -> bool:
    """Whether a rule matches; one with a phase that Caffe does not have never does."""
    try:
        if "phase" in rule and rule.choice("phase", PHASES, "") != state.phase:
            return False
    except UnknownWord:
        return False
    if "min_level" in rule and state.level < rule.whole("min_level"):
        return False
    if "max_level" in rule and state.level > rule.whole("max_level"):
        return False
    if not state.stages.issuperset(rule.texts("stage")):
        return False
    return not state.stages.intersection(rule.texts("not_stage"))
