"""A Dask cluster as the executor of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from layerscope.errors import MissingExtra, UsageError

CONNECT_S = 10


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a running Dask cluster, by the address of its scheduler.

    Each task runs in a process that the Dask worker starts, with the same limits as on one
    machine. Files must be in the same folders on all machines.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("a Dask cluster", "cluster") from None
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"--dask {address}: {error}") from None
    try:
        with client.get_executor(pure=False, retries=0) as executor:
            yield executor
    finally:
        client.close()
