"""Small documents: one without a fault, and one with a wrong figure."""

from __future__ import annotations

CLEAN = """\
# A small network

| layer | type | kernel | stride | pad | output | params | MACs |
| --- | --- | --- | --- | --- | --- | ---: | ---: |
| data | input | | | | 32x32x3 | 0 | 0 |
| conv1 | conv | 3x3 | 1 | 1 | 32x32x16 | 448 | 442,368 |
| pool1 | max pool | 2x2 | 2 | 0 | 16x16x16 | 0 | 0 |
| conv2 | conv | 3x3 | 1 | 1 | 16x16x32 | 4,640 | 1,179,648 |
| pool2 | max pool | 2x2 | 2 | 0 | 8x8x32 | 0 | 0 |
| conv3 | conv | 3x3 | 1 | 1 | 8x8x64 | 18,496 | 1,179,648 |
| fc | fc | | | | 10 | 40,970 | 40,960 |
| total | | | | | | 64,554 | 2,842,624 |
"""
WRONG = CLEAN.replace("4,640", "4,460")
LINE, POSITION = 8, 43  # of the wrong figure
