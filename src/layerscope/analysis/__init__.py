"""The walks over a graph: shapes, costs, receptive fields, memory, the backward pass."""
