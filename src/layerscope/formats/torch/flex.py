"""Flex attention, which takes the function of a score and the blocks to skip from its caller.

It looks at the device of its tensors and asks for the compiler, so that no mode ever sees it. While
a model that calls it is captured it is answered here: as attention over all pairs, its functions as
unknown. In other threads it runs as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from types import FunctionType
from typing import Any

HOME = "torch.nn.attention.flex_attention"
MARK = "the constant that stands for STATE"
LOCK = Lock()


class State:
    """Who answers calls, by thread, and the function as it was."""

    def __init__(self) -> None:
        self.answers: dict[int, Any] = {}
        self.original: Any = None

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """One call of the function, in any thread."""
        answer = self.answers.get(get_ident())
        if answer is not None:
            return answer(*args, **kwargs)
        return self.original(*args, **kwargs)


STATE = State()


def raised_in(error: BaseException) -> bool:
    """Whether an error came through flex attention, which takes no tensors without numbers."""
    function = getattr(sys.modules.get(HOME), "flex_attention", None)
    code = getattr(STATE.original or function, "__code__", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


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

    def answer(
        q: Any,
        k: Any,
        v: Any,
        score_mod: Any = None,
        block_mask: Any = None,
        scale: Any = None,
        enable_gqa: Any = False,
        return_lse: Any = False,
        kernel_options: Any = None,
        return_aux: Any = None,
    ) -> Any:
        attend = torch.nn.functional.scaled_dot_product_attention
        out = attend(q, k, v, scale=scale, enable_gqa=enable_gqa)
        if score_mod is not None:
            out = unknown("flex_attention.score_mod", out)
        if block_mask is not None:
            say(_skipped(block_mask, q, k))
        if not return_lse and return_aux is None:
            return out
        rows = tuple(q.shape[:-1])
        if return_aux is None:
            return out, unknown("flex_attention.lse", out, rows)
        made = {
            name: unknown(f"flex_attention.{name}", out, rows)
            for name in ("lse", "max_scores")
            if getattr(return_aux, name)
        }
        return out, sys.modules[HOME].AuxOutput(**made)

    outer = _answer_with(function, answer)
    try:
        yield
    finally:
        _answer_no_more(function, outer)


def _answer_with(function: Any, answer: Any) -> Any:
    """Have this thread's calls answered; what answered them before."""
    with LOCK:
        outer = STATE.answers.get(get_ident())
        if not STATE.answers:
            code, defaults = function.__code__, function.__defaults__
            original = FunctionType(code, function.__globals__, function.__name__, defaults)
            original.__kwdefaults__ = function.__kwdefaults__
            STATE.original = original
            consts = [STATE if each == MARK else each for each in _stand_in.__code__.co_consts]
            function.__code__ = _stand_in.__code__.replace(co_consts=tuple(consts))
        STATE.answers[get_ident()] = answer
        return outer


def _answer_no_more(function: Any, outer: Any) -> None:
    with LOCK:
        if outer is not None:
            STATE.answers[get_ident()] = outer
            return
        del STATE.answers[get_ident()]
        if not STATE.answers:
            # STATE keeps the original: a call in another thread may be about to make use of it
            function.__code__ = STATE.original.__code__
            STATE.original = FunctionType(
                function.__code__, function.__globals__, function.__name__, function.__defaults__
            )
            STATE.original.__kwdefaults__ = function.__kwdefaults__


def _stand_in(*args: Any, **kwargs: Any) -> Any:
    state: Any = "the constant that stands for STATE"
    return state.call(*args, **kwargs)


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
