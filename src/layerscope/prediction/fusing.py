"""Which layers an engine would run as one, told from the source graph alone."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.report import Layer, Report

PRODUCTS = ("conv", "conv_transpose", "linear")
AFTER = {
    "conv": (
        "relu", "relu6", "sigmoid", "tanh", "leaky_relu", "hard_sigmoid", "hard_swish", "clip",
    ),
    "conv_transpose": (),
    "linear": ("relu",),
}  # fmt: skip
NORMS = ("batch_norm", "scale", "bias")
VIEWS = ("flatten", "reshape", "squeeze", "unsqueeze")
FREE = ("dropout", "identity", "table", "positions", *VIEWS)


def rows_of(report: Report) -> list[tuple[Layer, ...]]:
    """Rows in order: products with norm, sum and activation after them; views are in none."""
    readers: dict[str, list[Layer]] = {}
    for layer in report.layers:
        for name in layer.node.inputs:
            readers.setdefault(name, []).append(layer)
    final = set(report.graph.outputs)
    place = {layer.name: n for n, layer in enumerate(report.layers)}
    taken: set[str] = set()
    rows = []

    def next_of(layer: Layer) -> Layer | None:
        """The only reader of a layer, past dropped ones."""
        out = layer.node.outputs[0]
        found = readers.get(out, [])
        if len(layer.node.outputs) > 1 or len(found) != 1 or out in final:
            return None
        if found[0].op in ("dropout", "identity"):
            taken.add(found[0].name)
            return next_of(found[0])
        return found[0] if found[0].name not in taken else None

    made_at = {name: place[layer.name] for layer in report.layers for name in layer.node.outputs}
    for layer in report.layers:
        if layer.name in taken or layer.op in FREE:
            continue
        row = [layer]
        if layer.op in PRODUCTS:
            after = next_of(layer)
            if after is not None and after.op in NORMS:
                row.append(after)
                after = next_of(after)
            if after is not None and after.op == "add" and layer.op == "conv":
                same = {tensor.shape for tensor in after.inputs} == {layer.output}
                # The later of the two sides takes the sum.
                sides = [made_at.get(name, -1) for name in after.node.inputs]
                if same and len(sides) == 2 and max(sides) == place[row[-1].name]:
                    row.append(after)
                    after = next_of(after)
            if after is not None and after.op in AFTER[layer.op]:
                row.append(after)
        elif layer.op == "permute":
            more = [layer]
            while (after := next_of(more[-1])) is not None and after.op in VIEWS:
                more.append(after)
            if after is not None and after.op == "permute" and run_of([*more, after]):
                row = [*more, after]
        elif layer.op == "batch_norm" and (after := next_of(layer)) and after.op == "relu":
            row.append(after)
        taken.update(each.name for each in row)
        rows.append(tuple(row))
    return rows


def run_of(row: Sequence[Layer]) -> int:
    """Elements that stay side by side when axes are exchanged; 0 where that cannot be told.

    Between two exchanges axes may be parted, as where channels are shuffled: the engine then
    exchanges once.
    """
    axes = _axes(row[0].inputs[0].shape or ())
    for layer in row:
        if layer.op != "permute":
            continue
        parted = _parted(axes, layer.inputs[0].shape or ())
        if parted is None:
            return 0
        axes = [parted[n] for n in layer.node.attributes.order]
    run = 1
    for size, step in reversed(axes):
        if step != run and size > 1:
            break
        run *= size
    return run


def _axes(shape: Sequence[int]) -> list[tuple[int, int]]:
    """Sizes, and how far elements lie apart."""
    axes, step = [], 1
    for size in reversed(shape):
        axes.append((size, step))
        step *= size
    return axes[::-1]


def _parted(axes: Sequence[tuple[int, int]], shape: Sequence[int]) -> list[tuple[int, int]] | None:
    """The axes of a view that parts some and joins none; None where it is another."""
    left = list(shape)
    found: list[tuple[int, int]] = []
    for size, step in axes:
        inner, held = [], 1
        while left and (held < size or left[0] == 1):
            inner.append(left.pop(0))
            held *= inner[-1]
        if held != size:
            return None
        found += [(each, step * apart) for each, apart in _axes(inner)]
    return None if left else found
