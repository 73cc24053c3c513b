"""Limits on the contents of files; an error that a limit raises has the name of the limit.

Reading a file of up to 1 MB, whatever its bytes, takes at most 10 s and 1 GB. A larger file takes
time and memory in proportion to its contents.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import FormatError

MOST_SIZE = 2**63 - 1  # of an axis, an array, a file: the largest int64
IN_PYTHON = "give the model as my_file.py:make_model, which has no limit"
LONGEST_NUMBER = 128  # bits of a number that an error prints in full


class Limit(Struct, frozen=True):
    """The largest count that a reader accepts, and the reason."""

    name: str
    most: int
    unit: str
    why: str
    instead: str = ""  # what the user can do

    def check(self, count: int, where: str) -> None:
        """Raise FormatError if `count` is above the limit."""
        if count > self.most:
            raise FormatError(f"{where}: {self.refusal(count)}")

    def at_least(self, most: int) -> Limit:
        """The same limit, raised to `most` for a large file."""
        return replace(self, most=max(self.most, most))

    def refusal(self, count: int | None = None) -> str:
        """The text of the error; without a count it says `too many`."""
        many = count is None or count.bit_length() > LONGEST_NUMBER
        found = "too many" if many else f"{count:,}"
        instead = f"; {self.instead}" if self.instead else ""
        return f"{found} {self.unit}, the limit {self.name} is {self.most:,}{instead}"


def plain(number: int) -> str:
    """A number as errors print it: in full unless it is very long."""
    bits = number.bit_length()
    return f"{number:,}" if bits <= LONGEST_NUMBER else f"a number of {bits:,} bits"


ARRAY_RANK = Limit("ARRAY_RANK", 64, "axes", "NumPy and PyTorch take no more")
ARRAY_ELEMENTS = Limit(
    "ARRAY_ELEMENTS", MOST_SIZE, "elements in an array", "no library addresses more"
)
NAME_CHARACTERS = Limit(
    "NAME_CHARACTERS", 1024, "characters in a name", "each row of a table is as wide as its names"
)
NAME_DEPTH = Limit(
    "NAME_DEPTH", 400, "modules in a path", "a path of n modules is n rows of the module tree"
)
SCOPES = Limit(
    "SCOPES", 4, "modules around each layer", "each is a row with the sums of its layers"
)
NUMBER_DIGITS = Limit(
    "NUMBER_DIGITS", 400, "digits in a number", "long numbers take quadratic time to convert"
)
HEADER_BYTES = Limit(
    "HEADER_BYTES", 100_000_000, "bytes of header", "the limit of the safetensors library"
)
INDEX_BYTES = Limit("INDEX_BYTES", 100_000_000, "bytes of index", "as for a header of safetensors")
INDEX_FILES = Limit("INDEX_FILES", 10_000, "files in an index", "large models have some hundred")
JSON_BYTES = Limit(
    "JSON_BYTES", 1 << 28, "bytes of JSON", "the program of a large model has 100 MB"
)
TIMES_BYTES = Limit(
    "TIMES_BYTES", 1 << 24, "bytes of times", "a network of ten thousand layers has 1 MB"
)
TIMES_ROWS = Limit("TIMES_ROWS", 100_000, "times in a file", "each is a row of the table")
DOCUMENT_BYTES = Limit(
    "DOCUMENT_BYTES", 1 << 25, "bytes of a document", "a table of 100,000 rows has 10 MB"
)
DOCUMENT_ROWS = Limit(
    "DOCUMENT_ROWS",
    10_000,
    "rows in the tables of a document",
    "ten seconds; a large network has a thousand",
    "give a part of it",
)
CALLS_BYTES = Limit(
    "CALLS_BYTES", 1 << 24, "bytes of Builder calls", "a network of ten thousand layers has 1 MB"
)
BRACKETS = Limit("BRACKETS", 16, "brackets in each other", "the arguments of a call need four")
PRINT_DEPTH = Limit("PRINT_DEPTH", 200, "modules in each other in a print", "models have some ten")
PRINTED_MODULES = Limit(
    "PRINTED_MODULES", 100_000, "modules in a print", "five seconds; a large model has ten thousand"
)
CALL_NODES = Limit(
    "CALL_NODES",
    32,
    "nodes of a call of an exported program",
    "an in-place write changes all views, and each chain of views is computed again",
)
ZIP_ENTRIES = Limit(
    "ZIP_ENTRIES", 2_000_000, "members in a zip archive", "a model has some hundred thousand"
)
UNPACKED_PICKLE = Limit(
    "UNPACKED_PICKLE",
    1 << 22,
    "bytes in a compressed pickle",
    "torch.save does not compress; 4 MB of any pickle need less than 1 GB",
)
PICKLE_BYTES = Limit(
    "PICKLE_BYTES", 1 << 28, "bytes of pickle", "arrays are stored apart from the pickle"
)
UNPACKED_BYTES = Limit(
    "UNPACKED_BYTES",
    1 << 30,
    "bytes of unpacked data",
    "three seconds; a file of more than 11 MB may unpack to UNPACKED_RATIO times its size",
)
UNPACKED_RATIO = Limit(
    "UNPACKED_RATIO", 100, "times its size when unpacked", "weights are packed to a tenth at best"
)
MATLAB_VALUES = Limit(
    "MATLAB_VALUES",
    200_000,
    "values",
    "two seconds; a file of more than 1.6 MB may have one for every 8 bytes",
)
MATLAB_DEPTH = Limit("MATLAB_DEPTH", 64, "cells and structs in each other", "a network has ten")
CHILD_BYTES = Limit(
    "CHILD_BYTES", 1 << 30, "bytes of memory", "h5py reads headers and small arrays alone"
)
CHILD_SECONDS = Limit(
    "CHILD_SECONDS", 8, "s of CPU time", "a large network takes two; more for files above 32 MB"
)
CONFIG_BYTES = Limit("CONFIG_BYTES", 1 << 24, "bytes of configuration", "one has some kB")
MODEL_LAYERS = Limit(
    "MODEL_LAYERS",
    512,
    "layers of a configuration",
    "each takes 5 ms",
    IN_PYTHON,
)
MODEL_MODULES = Limit(
    "MODEL_MODULES", 50_000, "modules of a configuration", "five seconds", IN_PYTHON
)
MODEL_BYTES = Limit(
    "MODEL_BYTES",
    1 << 29,
    "bytes of weights of a model that cannot be built without them",
    "most are built on the meta device, where weights take no memory",
    IN_PYTHON,
)
