"""Sessions of ONNX Runtime: options, bound inputs and outputs, and the optimised model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from layerscope.engines.affinity import worker_affinities
from layerscope.engines.onnx_nodes import EngineGraph, engine_graph
from layerscope.engines.workload import MeasureOptions, Workload, first_line
from layerscope.errors import EngineError, MissingExtra
from layerscope.interrupts import scratch_folder

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxruntime import InferenceSession, IOBinding, SessionOptions

    from layerscope.engines import Arrays

OPTIMISED, WEIGHTS = "optimised.onnx", "weights"  # files of the optimised model
FATAL = 4  # log level: errors are raised as well


class SessionSettings(Struct, frozen=True):
    """What a session does besides running; `keep` writes its optimised model to the folder."""

    profile: bool = False
    keep: Literal["", "operators", "weights"] = ""
    memory_pattern: bool = True


PLAIN = SessionSettings()


def onnxruntime_module() -> ModuleType:
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtra("measuring with onnxruntime", "measure") from None
    module: ModuleType = onnxruntime
    return module


def create_session(
    workload: Workload, options: MeasureOptions, folder: str, settings: SessionSettings = PLAIN
) -> InferenceSession:
    ort = onnxruntime_module()
    session_options = ort.SessionOptions()
    session_options.log_severity_level = FATAL
    session_options.intra_op_num_threads = options.threads
    session_options.inter_op_num_threads = 1
    session_options.enable_mem_pattern = settings.memory_pattern
    for key, value in config_entries(options).items():
        session_options.add_session_config_entry(key, value)
    if options.fusion == "off":
        session_options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if settings.profile:
        session_options.enable_profiling = True
        session_options.profile_file_prefix = os.path.join(folder, "profile")
    if settings.keep:
        _keep_optimised(session_options, folder, settings.keep == "weights")
    try:
        return ort.InferenceSession(
            workload.model, session_options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise EngineError(
            f"{workload.report.name}: onnxruntime refuses it: {first_line(error)}"
        ) from None


def config_entries(options: MeasureOptions) -> dict[str, str]:
    # Threads of one session that wait by spinning would take the CPU from the other's.
    return {"session.force_spinning_stop": "1", **worker_affinities(options.threads)}


def _keep_optimised(session_options: SessionOptions, folder: str, weights: bool) -> None:
    """Let a session write its optimised model to the folder, with weights or without."""
    for name in (OPTIMISED, WEIGHTS):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    session_options.optimized_model_filepath = os.path.join(folder, OPTIMISED)
    entry = "session.optimized_model_external_initializers_"
    session_options.add_session_config_entry(f"{entry}file_name", WEIGHTS)
    session_options.add_session_config_entry(f"{entry}min_size_in_bytes", "256")
    if not weights:
        with suppress(OSError):
            os.symlink(os.devnull, os.path.join(folder, WEIGHTS))


def optimised_graph(folder: str) -> EngineGraph:
    import onnx

    return engine_graph(onnx.load(os.path.join(folder, OPTIMISED), load_external_data=False))


def optimised_model(model: bytes, disabled: Sequence[str] = ()) -> ModelProto:
    """The model that onnxruntime's optimisers write for this processor.

    `disabled` are optimisers to leave out, such as NchwcTransformer.
    """
    import onnx

    ort = onnxruntime_module()
    with scratch_folder() as folder:
        options = ort.SessionOptions()
        options.log_severity_level = FATAL
        options.optimized_model_filepath = os.path.join(folder, OPTIMISED)
        ort.InferenceSession(
            model, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(disabled)
        )
        return onnx.load(os.path.join(folder, OPTIMISED), load_external_data=False)


def bind(session: InferenceSession, inputs: Arrays) -> IOBinding:
    """Bind inputs and outputs, so that a run copies nothing to or from Python."""
    ort_value = onnxruntime_module().OrtValue.ortvalue_from_numpy
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, ort_value(array))
    for each in session.get_outputs():
        binding.bind_output(each.name)
    return binding
