"""The FLOP count of `numpy.einsum_path(..., optimize="optimal")`, computed without numpy."""

from __future__ import annotations

from itertools import combinations

from layerscope.graph.types import elements
from layerscope.ops import Call
from layerscope.ops.linear import einsum_terms

Letters = frozenset[str]
MOST_OPERANDS = 7  # numpy tries every contraction order


def numpy_flops(call: Call) -> int:
    """Two per multiply-add, plus one, rounded to the four digits that numpy prints."""
    terms, right, sizes = einsum_terms(call)
    operands = tuple([frozenset(term) for term in terms])
    kept = frozenset(right)
    cost = _flops(frozenset().union(*operands), operands, kept, sizes)
    if 2 < len(operands) <= MOST_OPERANDS and kept != frozenset(sizes):
        most = max([elements(tuple([sizes[each] for each in term])) for term in (*terms, right)])
        cost = _best(operands, kept, sizes, most)
    return int(float(f"{cost + 1:.3e}"))


def _flops(
    letters: Letters, joined: tuple[Letters, ...], kept: Letters, sizes: dict[str, int]
) -> int:
    """Multiplications of all index combinations, and an addition each where one is summed."""
    factor = max(1, len(joined) - 1) + (not letters <= kept)
    return elements(tuple([sizes[each] for each in letters])) * factor


def _best(operands: tuple[Letters, ...], kept: Letters, sizes: dict[str, int], most: int) -> int:
    """The cheapest order of pairwise contractions without an intermediate above `most` elements."""
    found = [(0, operands)]
    while len(found[0][1]) > 1:
        after = []
        for cost, left in found:
            for one, two in combinations(range(len(left)), 2):
                rest = tuple([each for n, each in enumerate(left) if n not in (one, two)])
                letters = left[one] | left[two]
                result = letters & kept.union(*rest)
                if elements(tuple([sizes[each] for each in result])) > most:
                    continue
                pair = (left[one], left[two])
                after.append((cost + _flops(letters, pair, result, sizes), (*rest, result)))
        if not after:  # contract the remaining operands at once
            cost, left = min(found, key=lambda each: each[0])
            return cost + _flops(frozenset().union(*left), left, kept, sizes)
        found = after
    return min([cost for cost, _ in found])
