"""PyTorch models, checkpoints and exported programs. PyTorch is imported only for live models.

A live model, in the order that data passes through:

- frontend: what the user gives. capture: one forward, run again if it needs values or autograd.
- module_table: modules and parameters by path. shadows, shadow_attributes, scripted, tensor_copies:
  the copies that run instead of the user's modules. restore: modes and random states.
- modules: calls of modules. fast_paths: modules captured without a run.
- dispatch: calls of operators, each to its handler: compute_calls, view_calls, write_calls,
  constant_calls, computed_values (reads), higher_order. capture_state: what handlers share.
- op_calls: schema and cache key of a call. plans: its nodes and results. lowering and aten/:
  converters. strides, integer_results: inferred results. meta_runs: runs on the meta device.
  custom_ops: user rules.
- tensors: tensors of the forward. tracking, inplace_writes: names, nodes and writes.
  caches: what outlives a capture.
- autocast, flex, grads, lazy, literals, packed, attention_windows: features of PyTorch models.
- graph_assembly: the finished Graph. failures: errors of the forward.

An exported program: pt2, export_schema, export_modules, export_arguments, exported_program.
"""
