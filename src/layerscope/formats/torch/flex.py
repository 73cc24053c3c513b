"""Flex attention, which takes the function of a score and the blocks to skip from its caller.

It looks at the device of its tensors and asks for the compiler, so that no mode ever sees it. While
a model runs it is answered here: as attention over all pairs, its functions as unknown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

HOME = "torch.nn.attention.flex_attention"
HOOK = "_layerscope_answer"


@contextmanager
def answered(torch: Any, unknown: Callable[..., Any], say: Callable[[str], None]) -> Iterator[None]:
    """Answer calls of `flex_attention` while the context lasts, however it was imported.

    `unknown` makes a node without figures of a tensor, `say` takes notes on what was answered.
    """
    home = sys.modules.get(HOME)
    function = getattr(home, "flex_attention", None)
    if not isinstance(function, FunctionType) or function.__closure__:
        yield
        return

    def answer(q: Any, k: Any, v: Any, told: dict[str, Any]) -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        out = attend(q, k, v, scale=told["scale"], enable_gqa=told["enable_gqa"])
        if told["score_mod"] is not None:
            out = unknown("flex_attention.score_mod", out)
        if told["block_mask"] is not None:
            say(_skipped(told["block_mask"], q, k))
        aux = told["return_aux"]
        if not told["return_lse"] and aux is None:
            return out
        rows = tuple(q.shape[:-1])
        if aux is None:
            return out, unknown("flex_attention.lse", out, rows)
        made = {
            name: unknown(f"flex_attention.{name}", out, rows)
            for name in ("lse", "max_scores")
            if getattr(aux, name)
        }
        return out, sys.modules[HOME].AuxOutput(**made)

    before, function.__code__ = function.__code__, _stand_in.__code__
    defaults = function.__kwdefaults__
    function.__kwdefaults__ = {"return_aux": None}
    setattr(home, HOOK, answer)
    try:
        yield
    finally:
        function.__code__, function.__kwdefaults__ = before, defaults
        delattr(home, HOOK)


def _stand_in(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Any = None,
    block_mask: Any = None,
    scale: Any = None,
    enable_gqa: Any = False,
    return_lse: Any = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
) -> Any:
    told = {
        "score_mod": score_mod, "block_mask": block_mask, "scale": scale,
        "enable_gqa": enable_gqa, "return_lse": return_lse, "return_aux": return_aux,
    }  # fmt: skip
    return _layerscope_answer(query, key, value, told)  # type: ignore[name-defined]  # noqa: F821


def _skipped(mask: Any, q: Any, k: Any) -> str:
    """What a mask of blocks would leave out."""
    told = "flex attention is counted over all pairs"
    numbers = getattr(mask, "kv_num_blocks", None)
    if numbers is None or numbers.device.type != "cpu":
        return f"{told}; its mask of blocks may skip some"
    full = getattr(mask, "full_kv_num_blocks", None)
    run = int(numbers.sum()) + (int(full.sum()) if full is not None else 0)
    rows, columns = mask.BLOCK_SIZE
    blocks = -(-q.shape[-2] // rows) * -(-k.shape[-2] // columns) * (numbers[..., 0].numel())
    return f"{told}; its mask skips {blocks - run} of {blocks} blocks of {rows}x{columns}"
