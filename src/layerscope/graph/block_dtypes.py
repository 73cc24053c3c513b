"""Dtypes of ggml: numbers in blocks with their scales, as its `type_traits` list them."""

from __future__ import annotations

GGML_DTYPES = (
    # dtype, numbers and bytes of a block, ggml type
    ("f32", 1, 4, 0), ("f16", 1, 2, 1), ("q4_0", 32, 18, 2), ("q4_1", 32, 20, 3),
    ("q5_0", 32, 22, 6), ("q5_1", 32, 24, 7), ("q8_0", 32, 34, 8), ("q8_1", 32, 36, 9),
    ("q2_k", 256, 84, 10), ("q3_k", 256, 110, 11), ("q4_k", 256, 144, 12),
    ("q5_k", 256, 176, 13), ("q6_k", 256, 210, 14), ("q8_k", 256, 292, 15),
    ("iq2_xxs", 256, 66, 16), ("iq2_xs", 256, 74, 17), ("iq3_xxs", 256, 98, 18),
    ("iq1_s", 256, 50, 19), ("iq4_nl", 32, 18, 20), ("iq3_s", 256, 110, 21),
    ("iq2_s", 256, 82, 22), ("iq4_xs", 256, 136, 23), ("i8", 1, 1, 24), ("i16", 1, 2, 25),
    ("i32", 1, 4, 26), ("i64", 1, 8, 27), ("f64", 1, 8, 28), ("iq1_m", 256, 56, 29),
    ("bf16", 1, 2, 30), ("tq1_0", 256, 54, 34), ("tq2_0", 256, 66, 35), ("mxfp4", 32, 17, 39),
)  # fmt: skip
PLAIN = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "f64": "fp64", "i8": "int8",
         "i16": "int16", "i32": "int32", "i64": "int64"}  # fmt: skip
BLOCK_DTYPES = {name: (numbers, size) for name, numbers, size, _ in GGML_DTYPES if numbers > 1}
