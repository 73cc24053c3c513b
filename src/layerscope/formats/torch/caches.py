"""Tables that outlive a capture: what was inferred for one model is reused for the next.

| table | key | holds | size |
| --- | --- | --- | --- |
| `CaptureCaches.attributes` | type, attributes | equal attributes as one object | trimmed with it |
| `CaptureCaches.metas` | shape, strides, dtype, kind | one `TensorMeta` for each | `MOST_CACHED` |
| `CaptureCaches.plans` | operator, arguments | the `CallPlan` of a call | `MOST_CACHED` |
| `OPERATORS` | identity of the operator | its schema as an `OpInfo` | operators called so far |
| `FAST_PATH_ATTRS` | class of a module | number of its attributes | classes of FAST_PATHS |

Threads share all of them. Entries are only added, each in one step (`dict.setdefault`), and equal
keys have equal entries, so that no lock is needed. Full tables are replaced, not emptied: a capture
that runs in another thread goes on with those it began with. Tables of one capture are attributes
of its objects (`Capture`, `ModuleCalls`, `Shadows`, `Autocast`). Functions of the PyTorch module
alone (`@cache`) have one entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from layerscope.formats.torch.lowering import CallPlan
    from layerscope.formats.torch.op_calls import OpInfo
    from layerscope.formats.torch.tensors import TensorMeta

MOST_CACHED = 100_000  # calls; at more, the next capture begins with empty tables

AttrCache = dict[Any, Any]
Plans = dict[Any, "CallPlan"]


class CaptureCaches:
    """Attributes, tensor metas and call plans, from one capture to the next."""

    def __init__(self) -> None:
        self.attributes: AttrCache = {}
        self.metas: dict[Any, TensorMeta] = {}
        self.plans: dict[tuple[str, bool], Plans] = {}  # by the model's float dtype, and train mode


CACHES = [CaptureCaches()]  # the one that new captures begin with
OPERATORS: dict[int, OpInfo] = {}
FAST_PATH_ATTRS: dict[type, int] = {}


def trim_caches() -> None:
    """Begin with empty tables if those of `CACHES` are full."""
    cached = CACHES[0]
    plans = sum(map(len, [*cached.plans.values()]))
    if plans > MOST_CACHED or len(cached.metas) > MOST_CACHED:
        CACHES[0] = CaptureCaches()
