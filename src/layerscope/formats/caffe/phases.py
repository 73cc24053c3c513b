"""Which layers of a file belong to the network that is asked for: Caffe's NetState rules."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.codecs.message import Message, UnknownWord
from layerscope.errors import FormatError

PHASES = ("TRAIN", "TEST")
STAGES = {"TRAIN": ("train",), "TEST": ("deploy", "val", "test")}


class State(Struct, frozen=True):
    """What rules are held against."""

    phase: str
    level: int = 0
    stages: frozenset[str] = frozenset()


def state_of(net: Message, phase: str, layers: Sequence[Message] = ()) -> State:
    """The phase asked for, with the level and stages that the file itself names.

    A file that has an input only in some stage, as those of DIGITS do, is taken in the one that
    goes with the phase.
    """
    told = net.message("state")
    state = State(phase.upper(), told.whole("level"), frozenset(told.texts("stage")))
    sources = [layer for layer in layers if "bottom" not in layer]
    if "input" in net or any(included(layer, state) for layer in sources):
        return state
    for stage in STAGES[state.phase]:
        within = State(state.phase, state.level, state.stages | {stage})
        if any(included(layer, within) for layer in sources):
            return within
    return state


def included(layer: Message, state: State) -> bool:
    """Whether a layer is in the network: if any rule of `include` is met, or none of `exclude`.

    A bare `phase` of a layer only tells how it is computed and leaves nothing out, as in Caffe.
    """
    include, exclude = layer.messages("include"), layer.messages("exclude")
    if include and exclude:
        raise _both(layer)
    if include:
        return any(_meets(rule, state) for rule in include)
    return not any(_meets(rule, state) for rule in exclude)


def _both(layer: Message) -> FormatError:
    return layer.error(
        f"{layer.text('name')}: include and exclude, expected one of them", "exclude"
    )


def foreign_phases(layer: Message) -> list[str]:
    """Phases that the rules of a layer name and Caffe does not have."""
    rules = (*layer.messages("include"), *layer.messages("exclude"))
    found = [rule.text("phase") for rule in rules if "phase" in rule]
    return [word[:60] for word in found if word.upper() not in PHASES and word not in ("0", "1")]


def _meets(rule: Message, state: State) -> bool:
    """A rule of a phase that Caffe does not have is met in none."""
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
