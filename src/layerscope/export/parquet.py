"""The main table of a result as a Parquet file, with exact values."""

from __future__ import annotations

import io

from layerscope.errors import MissingExtra
from layerscope.export.grid import Blocks, Grid


def to_parquet(blocks: Blocks) -> bytes:
    """The bytes of a Parquet file; needs the extra `parquet`."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet", "parquet") from None
    grid = next(block for block in blocks if isinstance(block, Grid) and block.in_csv)
    head, *rows = grid.rows
    names = grid.names or [cell.text for cell in head]
    columns = {
        name: [None if row[n].value == "" else row[n].value or row[n].text for row in rows]
        for n, name in enumerate(names)
    }
    target = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), target)
    return target.getvalue()
