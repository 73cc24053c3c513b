"""Which layers an engine would run as one, told from the source graph alone."""

from __future__ import annotations

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
FREE = ("dropout", "identity", "flatten", "reshape", "table", "positions", "squeeze", "unsqueeze")


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
        elif layer.op == "batch_norm" and (after := next_of(layer)) and after.op == "relu":
            row.append(after)
        taken.update(each.name for each in row)
        rows.append(tuple(row))
    return rows
