"""Arrays of a folder with a model's weights, compared with the model that its config describes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from layerscope.formats.torch.checkpoints.safetensors import (
    WeightIndex,
    indexed_arrays,
    read_index,
    safetensors_arrays,
)
from layerscope.formats.torch.checkpoints.stored_array import array_bytes, short
from layerscope.graph.names import shape_text
from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from transformers import PreTrainedModel

INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"
MOST_NAMES = 3  # of a list in a note
Shapes = Mapping[str, Shape]


def stored_weight_notes(folder: str, model: PreTrainedModel) -> tuple[str, ...]:
    """Notes on the weights beside a config.json; none if there are no weights."""
    index_path, path = os.path.join(folder, INDEX), os.path.join(folder, WEIGHTS)
    if os.path.exists(index_path):
        index = read_index(index_path)
        files = {*index.weight_map.values()}
        missing = [name for name in files if not os.path.exists(os.path.join(folder, name))]
        if missing:
            return _names_notes(index, model, len(missing))
        arrays = indexed_arrays(index_path)
        stated = index.total_size
        names = [*index.weight_map]
    elif os.path.exists(path):
        arrays, stated, names = safetensors_arrays(path), None, []
    else:
        return ()
    stored = {each.name: each.shape for each in arrays}
    size = sum(array_bytes(folder, each.shape, each.dtype) for each in arrays)
    notes = [compared(stored, *_expected(model))]
    unlisted = {*names} ^ {*stored} if names else ()
    if unlisted:
        notes.append(f"the index and its files differ in {_listed(unlisted)}")
    if stated not in (None, size):
        notes.append(f"the index states {stated:,} bytes, its arrays have {size:,}")
    return tuple(notes)


def _expected(model: PreTrainedModel) -> tuple[dict[str, Shape], dict[str, Shape]]:
    """Shapes of arrays that a checkpoint has, and of other names of tied ones."""
    every = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    own = {name for name, _ in model.named_parameters()}
    own |= {name for name, _ in model.named_buffers()}
    needed = {name: shape for name, shape in every.items() if name in own}
    return needed, {name: shape for name, shape in every.items() if name not in own}


def compared(stored: Shapes, needed: Shapes, tied: Shapes) -> str:
    """What differs between stored arrays and those of the model, in one note.

    Arrays of other names with as many elements in all are the same weights, split or joined.
    """
    described = {**needed, **tied}
    shapes = [name for name in stored if name in described and stored[name] != described[name]]
    extra = {name: shape for name, shape in stored.items() if name not in described}
    missing = {name: shape for name, shape in needed.items() if name not in stored}
    count = f"{_elements(stored):,} elements in {len(stored):,} arrays"
    if not shapes and not extra and not missing:
        return f"stored weights: {count}, with the names and shapes of the model"
    found = [f"stored weights differ from the model: {count}, the model has "
             f"{_elements(needed):,} in {len(needed):,}"]  # fmt: skip
    if extra and _elements(extra) == _elements(missing):
        found.append(
            f"{_elements(extra):,} elements have other names, {len(extra):,} stored arrays for "
            f"{len(missing):,}: {_listed(extra)} for {_listed(missing)}"
        )
    elif extra or missing:
        found += [f"only stored: {_listed(extra)} ({_elements(extra):,} elements)"] if extra else []
        found += [f"not stored: {_listed(missing)} ({_elements(missing):,} elements)"] * bool(
            missing
        )
    if shapes:
        listed = [f"{short(n)} {shape_text(stored[n])}, in the model {shape_text(described[n])}"
                  for n in shapes[:MOST_NAMES]]  # fmt: skip
        found.append(f"other shapes: {'; '.join(listed)}{_and_more(len(shapes))}")
    return "; ".join(found)


def _names_notes(index: WeightIndex, model: PreTrainedModel, absent: int) -> tuple[str, ...]:
    """The comparison of names alone, where files of the index are absent."""
    needed, tied = _expected(model)
    extra = [name for name in index.weight_map if name not in needed and name not in tied]
    missing = [name for name in needed if name not in index.weight_map]
    files = "1 file of the index is" if absent == 1 else f"{absent:,} files of the index are"
    text = f"stored weights: shapes are not compared, {files} absent; "
    if extra or missing:
        text += f"only in the index: {_listed(extra)}; not in it: {_listed(missing)}"
    else:
        text += f"the names of its {len(index.weight_map):,} arrays are those of the model"
    if index.total_size is None:
        return (text,)
    size, count = index.total_size, _elements(needed)
    each = f", {size // count} for each" if count and size % count == 0 else ""
    return (f"{text}; it states {size:,} bytes for the model's {count:,} elements{each}",)


def _elements(shapes: Shapes) -> int:
    return sum(map(prod, shapes.values()))


def _listed(names: Mapping[str, Shape] | set[str] | list[str]) -> str:
    """The first names and how many more there are."""
    first = sorted(names)[:MOST_NAMES]
    return ", ".join(map(short, first)) + _and_more(len(names)) if first else "none"


def _and_more(count: int) -> str:
    return f" and {count - MOST_NAMES:,} more" if count > MOST_NAMES else ""
