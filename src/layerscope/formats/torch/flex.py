"""`flex_attention`, which takes a function of the scores and a mask of blocks from its caller.

It checks the device of its tensors and calls the compiler before anything is dispatched, so that no
dispatch mode sees it. While a model that calls it is captured, its code is replaced: in the
capturing thread the call is recorded as attention over all pairs, with its functions as unknown
nodes. In other threads it runs as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, get_ident
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.torch_types import Arg, Result, Torch

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn.attention.flex_attention import BlockMask

HOME = "torch.nn.attention.flex_attention"
MARK = "the constant that stands for STATE"
LOCK = Lock()


Function = Callable[..., Result]


class FlexCalls:
    """The replacement of each capturing thread, and the original function."""

    def __init__(self) -> None:
        self.answers: dict[int, Function] = {}  # by thread
        self.original: FunctionType | None = None

    def call(self, *args: Arg, **kwargs: Arg) -> Result:
        """Call the replacement of this thread, else the original."""
        answer = self.answers.get(get_ident())
        if answer is not None:
            return answer(*args, **kwargs)
        assert self.original is not None
        return self.original(*args, **kwargs)


STATE = FlexCalls()


def raised_in(error: BaseException) -> bool:
    """Whether an error was raised inside flex attention, which refuses meta tensors."""
    function = getattr(sys.modules.get(HOME), "flex_attention", None)
    code: CodeType | None = getattr(STATE.original or function, "__code__", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is code:
            return True
        trace = trace.tb_next
    return False


@contextmanager
def answered(
    torch: Torch, unknown: Callable[..., Tensor], add_note: Callable[[str], None]
) -> Iterator[None]:
    """Record calls of `flex_attention` while the context lasts, however it was imported.

    `unknown` adds a node without figures, `add_note` takes notes for the graph.
    """
    home = sys.modules.get(HOME)
    function = getattr(home, "flex_attention", None)
    if not isinstance(function, FunctionType) or function.__closure__:
        yield
        return

    def answer(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        score_mod: Function | None = None,
        block_mask: BlockMask | None = None,
        scale: float | None = None,
        enable_gqa: bool = False,
        return_lse: bool = False,
        kernel_options: object = None,
        return_aux: object = None,
    ) -> Result:  # the signature of flex_attention
        attend = torch.nn.functional.scaled_dot_product_attention
        out = attend(q, k, v, scale=scale, enable_gqa=enable_gqa)
        if score_mod is not None:
            out = unknown("flex_attention.score_mod", out)
        if block_mask is not None:
            add_note(_skipped(block_mask, q, k))
        if not return_lse and return_aux is None:
            return out
        rows = tuple(q.shape[:-1])
        if return_aux is None:
            return out, unknown("flex_attention.lse", out, rows)
        aux = {
            name: unknown(f"flex_attention.{name}", out, rows)
            for name in ("lse", "max_scores")
            if getattr(return_aux, name)
        }
        return out, sys.modules[HOME].AuxOutput(**aux)

    outer = _answer_with(function, answer)
    try:
        yield
    finally:
        _answer_no_more(function, outer)


def _answer_with(function: FunctionType, answer: Function) -> Function | None:
    """Set the replacement of this thread; the one that it had before."""
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


def _answer_no_more(function: FunctionType, outer: Function | None) -> None:
    with LOCK:
        if outer is not None:
            STATE.answers[get_ident()] = outer
            return
        del STATE.answers[get_ident()]
        if not STATE.answers:
            # STATE keeps the original: a call in another thread may be about to use it
            assert STATE.original is not None
            function.__code__ = STATE.original.__code__
            STATE.original = FunctionType(
                function.__code__, function.__globals__, function.__name__, function.__defaults__
            )
            STATE.original.__kwdefaults__ = function.__kwdefaults__


def _stand_in(*args: Arg, **kwargs: Arg) -> Result:
    state: Any = "the constant that stands for STATE"
    return state.call(*args, **kwargs)


def _skipped(mask: BlockMask, q: Tensor, k: Tensor) -> str:
    """The note on a block mask, which would skip some of the pairs."""
    counted = "flex attention is counted over all pairs"
    numbers = getattr(mask, "kv_num_blocks", None)
    if numbers is None or numbers.device.type != "cpu":
        return f"{counted}; its mask of blocks may skip some"
    full = getattr(mask, "full_kv_num_blocks", None)
    run = int(numbers.sum()) + (int(full.sum()) if full is not None else 0)
    rows, columns = mask.BLOCK_SIZE
    blocks = -(-q.shape[-2] // rows) * -(-k.shape[-2] // columns) * (numbers[..., 0].numel())
    return f"{counted}; its mask skips {blocks - run} of {blocks} blocks of {rows}x{columns}"
