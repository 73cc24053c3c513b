"""Errors of the user's own code (`file.py:make`, `package.module:Class`), as users see them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import layerscope
from layerscope.cli import run
from layerscope.errors import FormatError, LayerscopeError, ModelError
from tests.formats.torch.torch_nets import nn

Captured = pytest.CaptureFixture[str]
assert nn

# what is wrong -> the file, and the line on stderr; {file} is its path, {folder} that of the folder
FAULTY = {
    "raises at import": (
        "x = 1\nraise ValueError('no weights')\n",
        "{file}:2: ValueError: no weights",
    ),
    "raises in a function of torch": (
        "import torch\ndef make():\n    return torch.nn.Linear('a', 2)\n",
        "{file}:3: TypeError: ",
    ),
    "raises in make": (
        "def make():\n    width = {}\n    return width['x']\n",
        "{file}:3: KeyError: 'x'",
    ),
    "raises in a function below": (
        "def inner():\n    return 1 / 0\n\ndef make():\n    return inner()\n",
        "{file}:2: ZeroDivisionError: division by zero",
    ),
    "raises in a module beside it": (
        "from helper import broken\ndef make():\n    return broken()\n",
        "{folder}/helper.py:2: RuntimeError: broken",
    ),
    "raises in eval": (
        """
        from torch import nn
        class Net(nn.Module):
            def eval(self):
                raise OSError("read only")
        make = Net
        """,
        "{file}:5: OSError: read only",
    ),
    "exits at import": (
        "import sys\nsys.exit()\n",
        "{file}:2: sys.exit() was called, expected a torch.nn.Module",
    ),
    "exits with success": (
        "import sys\ndef make():\n    sys.exit(0)\n",
        "{file}:3: sys.exit(0) was called, expected a torch.nn.Module",
    ),
    "exits with a text": (
        "def make():\n    raise SystemExit('no GPU')\n",
        "{file}:2: sys.exit('no GPU') was called, expected a torch.nn.Module",
    ),
    "exits in the forward": (
        """
        import sys
        from torch import nn
        class make(nn.Module):
            def forward(self, x):
                sys.exit(1)
        """,
        "{file}:6: sys.exit(1) was called, expected a torch.nn.Module, in the forward pass",
    ),
    "raises in the forward": (
        """
        from torch import nn
        class make(nn.Module):
            def forward(self, x):
                return x.nothing
        """,
        "AttributeError: 'Tensor' object has no attribute 'nothing'; in {file}:make (make) on "
        "1x3x224x224 fp32, at {file}:5 — input 1x3x224x224 was a guess; give the shape",
    ),
    "misses arguments": (
        "def make(width, *, depth, name='a', **more):\n    pass\n",
        "{file}:1: make() needs arguments: width, depth; give defaults or write a function without "
        "arguments",
    ),
    "misses arguments of a class": (
        """
        from torch import nn
        class make(nn.Module):
            def __init__(self, width):
                super().__init__()
        """,
        "{file}:3: make() needs arguments: width; give defaults",
    ),
    "imports what is missing": (
        "import os\nimport no_such_package.inner\n",
        "{file}:2: ModuleNotFoundError: no module named 'no_such_package'; install it",
    ),
    "imports what is missing when called": (
        "def make():\n    import no_such_package\n",
        "{file}:2: ModuleNotFoundError: no module named 'no_such_package'; install it",
    ),
    "imports a name that is missing": (
        "from torch.nn import Convv2d\n",
        "{file}:1: ImportError: cannot import name 'Convv2d' from 'torch.nn'",
    ),
    "has a syntax error": (
        "def make():\n    return 1\n\nx = = 2\n",
        "{file}:4: SyntaxError: ",
    ),
    "has a syntax error in a module beside it": (
        "import wrong\n",
        "{folder}/wrong.py:2: SyntaxError: ",
    ),
    "has a wrong indent": (
        "def make():\nreturn 1\n",
        "{file}:2: IndentationError: expected an indented block",
    ),
    "has null bytes": ("x = '\0'\n", "{file}:make: SyntaxError: source code "),
    "returns nothing": (
        "def make():\n    pass\n",
        "{file}:1: make() returned None, expected a torch.nn.Module",
    ),
    "returns a tuple": (
        "from torch import nn\ndef make():\n    return nn.ReLU(), 3\n",
        "{file}:2: make() returned a tuple, expected a torch.nn.Module",
    ),
    "returns a class": (
        "from torch import nn\ndef make():\n    return nn.ReLU\n",
        "{file}:2: make() returned the class ReLU, expected a torch.nn.Module",
    ),
    "is a generator": (
        "from torch import nn\ndef make():\n    yield nn.ReLU()\n",
        "{file}:2: make() returned a generator (it has yield), expected a torch.nn.Module",
    ),
    "is async": (
        "from torch import nn\nasync def make():\n    return nn.ReLU()\n",
        "{file}:2: make() returned a coroutine (it is async), expected a torch.nn.Module",
    ),
    "is no function": ("make = 3\n", "{file}:make: an int, expected a torch.nn.Module or a"),
    "raises no Exception": (
        "class Stop(BaseException): pass\ndef make():\n    raise Stop('enough')\n",
        "{file}:3: Stop: enough",
    ),
    "raises GeneratorExit at import": ("raise GeneratorExit\n", "{file}:1: GeneratorExit"),
    "raises StopIteration": ("def make():\n    next(iter(()))\n", "{file}:2: StopIteration"),
    "raises without a text that can be read": (
        """
        class Odd(Exception):
            def __str__(self):
                raise TypeError
        def make():
            raise Odd
        """,
        "{file}:6: Odd: its text cannot be read (TypeError)",
    ),
    "raises many lines": (
        "def make():\n    raise ValueError('one\\n\\x1b[31mtwo\\n' + 'x' * 5000)\n",
        "{file}:2: ValueError: one \\x1b[31mtwo xxx",
    ),
    "recurses": ("def make():\n    return make()\n", "{file}:2: RecursionError: maximum"),
    "raises on access": (
        "def __getattr__(name):\n    raise RuntimeError(name)\n",
        "{file}:2: RuntimeError: make",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("def broken():\n    raise RuntimeError('broken')\n")
    (tmp_path / "wrong.py").write_text("x = 1\nif x\n")
    return tmp_path


@pytest.mark.parametrize("fault", FAULTY)
def test_an_error_has_the_file_and_line_of_the_user(
    fault: str, folder: Path, capsys: Captured
) -> None:
    text, line = FAULTY[fault]
    file = folder / "net.py"
    file.write_text(dedent(text), encoding="utf-8")
    before = sys.path.copy()
    assert run(["show", f"{file}:make"]) == 3
    said = capsys.readouterr()
    assert said.err.startswith(f"layerscope: {line.format(file=file, folder=folder)}")
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert len(said.err) < 1000
    assert sys.path == before
    assert run(["show", f"{file}:make", "--debug"]) == 3
    assert capsys.readouterr().err.startswith("Traceback (most recent call last):\n")
    with pytest.raises(LayerscopeError):
        layerscope.analyze(f"{file}:make")
    for name in ("helper", "wrong"):
        sys.modules.pop(name, None)


def test_a_file_that_fails_is_no_module_afterwards(tmp_path: Path) -> None:
    (tmp_path / "half_imported.py").write_text("x = 1\nraise ValueError\n")
    with pytest.raises(FormatError):
        layerscope.analyze(f"{tmp_path}/half_imported.py:x")
    assert "_layerscope_half_imported" not in sys.modules


def test_errors_are_of_one_class(folder: Path) -> None:
    (folder / "net.py").write_text("import sys\ndef make():\n    sys.exit(0)\n")
    with pytest.raises(FormatError) as raised:
        layerscope.analyze(f"{folder}/net.py:make")
    assert isinstance(raised.value.__cause__, BaseException)
    (folder / "net.py").write_text(dedent(FAULTY["exits in the forward"][0]))
    with pytest.raises(ModelError, match="in the forward pass") as raised_later:
        layerscope.analyze(f"{folder}/net.py:make", input=(1, 3))
    assert isinstance(raised_later.value.__cause__, SystemExit)


@pytest.mark.parametrize(
    "text",
    [
        "raise KeyboardInterrupt\n",
        "def make():\n    raise KeyboardInterrupt\n",
        "from torch import nn\nclass make(nn.Module):\n"
        "    def forward(self, x):\n        raise KeyboardInterrupt\n",
    ],
    ids=["import", "make", "forward"],
)
def test_an_interrupt_passes_through(text: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "net.py").write_text(text)
    with pytest.raises(KeyboardInterrupt):
        layerscope.analyze(f"{tmp_path}/net.py:make")
    assert run(["show", f"{tmp_path}/net.py:make"]) == 130
    assert capsys.readouterr().err == "layerscope: interrupted\n"


def test_imports_inside_a_function_find_the_folder(tmp_path: Path) -> None:
    (tmp_path / "parts_of_net.py").write_text(
        "from torch import nn\ndef part():\n    return nn.Linear(3, 2)\n"
    )
    (tmp_path / "net.py").write_text(
        "def make():\n    from parts_of_net import part\n    return part()\n"
    )
    assert layerscope.analyze(f"{tmp_path}/net.py:make", input=(4, 3)).total_macs == 24


PACKAGE = {
    "missing": ("import no_such_package\n", "{file}:1: ModuleNotFoundError: no module named"),
    "raising": ("def make():\n    raise ValueError('bad')\n", "{file}:2: ValueError: bad"),
    "exiting": ("import sys\nsys.exit(0)\n", "{file}:2: sys.exit(0) was called"),
    "in torch": (
        "from torch import nn\ndef make():\n    return nn.Linear('a', 2)\n",
        "{file}:3: TypeError: ",
    ),
}


@pytest.mark.parametrize("layout", ["package", "module"])
@pytest.mark.parametrize("fault", PACKAGE)
def test_packages(fault: str, layout: str, tmp_path: Path) -> None:
    text, line = PACKAGE[fault]
    packages = tmp_path / "lib" / "site-packages"
    file = packages / ("mine/nets.py" if layout == "package" else "minenets.py")
    file.parent.mkdir(parents=True)
    file.write_text(text)
    spec = "mine.nets:make" if layout == "package" else "minenets:make"
    if layout == "package":
        (file.parent / "__init__.py").write_text("")
    program = f"import sys; sys.path.insert(0, {str(packages)!r})\n"
    program += f"from layerscope.cli import run; sys.exit(run(['show', {spec!r}]))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(f"layerscope: {line.format(file=file)}")
    assert done.stderr.count("\n") == 1
