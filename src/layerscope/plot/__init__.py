"""Charts of reports and runs as Vega-Lite 6.4 specifications, one file per chart."""

from __future__ import annotations

PLOTS = {
    "memory": "bytes of activations alive while each layer runs, and what is alive at the peak",
    "costs": "bars of the multiply-adds of modules or layers, in execution order",
    "params": "bars of the parameters of modules or layers, in execution order",
    "activations": "bars of the layers that write most",
    "roofline": "FLOP/s over FLOP/B, one dot per layer, under the limits of a machine",
    "time": "bars of the slowest layers, of a run or predicted with --on",
    "throughput": "tokens/s over the time of a step, one dot per batch size of a language model",
}
