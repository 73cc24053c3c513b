"""Networks that a generator of the user's yields: `my_search.py:candidates`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from inspect import isgeneratorfunction
from typing import Any

import msgspec

from layerscope.errors import FormatError, LayerscopeError
from layerscope.graph import Graph
from layerscope.sweeping.tasks import SweepOptions, Task

EXPECTED = "expected a Graph, a torch.nn.Module, or the name of a network"


def candidates(spec: str, content: str, options: Sequence[SweepOptions]) -> Iterator[Task]:
    """The tasks of every network that a generator yields, in its order; errors are tasks too.

    A candidate is a Graph, a torch.nn.Module or the name of a network, or a pair of a name and one
    of these. What is neither a generator function nor iterable is one model, as for `show`.
    """
    from layerscope.formats.torch.model_names.python_code import python_object

    number = 0
    try:
        with python_object(spec) as (found, _):
            if isgeneratorfunction(found):
                found = found()
            elif callable(found) or not isinstance(found, Iterable):
                yield from (Task(spec, spec, each, content) for each in options)
                return
            for number, each in enumerate(found, 1):
                yield from _tasks(f"{spec}[{number}]", spec, each, options)
    except LayerscopeError as error:
        yield _failed(spec, options, error.line)
    except Exception as error:
        message = f"{type(error).__name__}: {error}, after {number} networks"
        yield _failed(spec, options, message)


def _failed(spec: str, options: Sequence[SweepOptions], message: str) -> Task:
    return Task(spec, spec, options[0], "", error=" ".join(message.split()))


def _tasks(name: str, spec: str, yielded: Any, options: Sequence[SweepOptions]) -> Iterator[Task]:
    """One task per set of options of a candidate."""
    if isinstance(yielded, tuple) and len(yielded) == 2 and isinstance(yielded[0], str):
        name, yielded = yielded
    for each in options:
        if isinstance(yielded, str):
            yield Task(name, yielded, each, yielded)
            continue
        try:
            graph = yielded if isinstance(yielded, Graph) else _captured(yielded, each)
        except Exception as error:
            line = error.line if isinstance(error, LayerscopeError) else f"{error}"
            yield Task(name, spec, each, "", error=" ".join(line.split()))
            continue
        from layerscope.graph.serialize import to_plain

        data = msgspec.json.encode(to_plain(graph))
        content = hashlib.sha256(data).hexdigest()
        yield Task(name, spec, each, content, data.decode())


def _captured(module: Any, options: SweepOptions) -> Graph:
    """The graph of a module of PyTorch with the inputs that are asked for."""
    import sys

    torch = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        raise FormatError(f"a {type(module).__name__}, {EXPECTED}")
    from layerscope.api.networks import analyze
    from layerscope.report.quantities import named_sizes

    shapes = named_sizes(options.input, "--input") if options.input else None
    return analyze(module, input=shapes, batch=options.batch).graph
