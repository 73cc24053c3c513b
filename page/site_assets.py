"""Put Pyodide, our sources and msgspec's wheel into the built site: the second half of `make site`.

`python page/site_assets.py build/site` copies Pyodide from page/node_modules, downloads the wheels
of page/wheels.txt by hash, zips their modules with src/layerscope, compiles that, and writes the
service worker.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

PAGE = Path(__file__).parent
SOURCES = PAGE.parent / "src"
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
PLATFORM = ("pyemscripten_2026_0_wasm32", "3.14", "cp314")
COMPILED = "msgspec/_core.cpython-314-wasm32-emscripten.so"
UNUSED = ("web", "sweeping", "dropins", "pytest_plugin.py")
MOST_BYTES = 10_000_000  # of the whole site, compressed


def main(site: Path) -> None:
    """Complete the site in a folder, and print its size."""
    (site / "site.html").rename(site / "index.html")
    copy_pyodide(site / "pyodide")
    with tempfile.TemporaryDirectory() as folder:
        files = dict(our_sources()) | unpacked(download(Path(folder)))
    (site / "msgspec.so").write_bytes(files.pop(COMPILED))
    (site / "python.zip").write_bytes(python_zip(files))
    subprocess.run(["node", str(PAGE / "compile.mjs"), str(site)], check=True)
    licences = PAGE.parent / "build" / "site-licences.txt"
    shutil.copy(licences, site / "licences.txt")
    write_service_worker(site)
    print_sizes(site)


def copy_pyodide(target: Path) -> None:
    """Copy what a browser loads; the lock lists no package, as all files come from the site."""
    source = PAGE / "node_modules" / "pyodide"
    target.mkdir()
    for name in PYODIDE:
        shutil.copy(source / name, target / name)
    lock = json.loads((source / "pyodide-lock.json").read_text(encoding="utf-8"))
    lock["packages"] = {}
    (target / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def download(folder: Path) -> list[Path]:
    """The wheels of wheels.txt for Pyodide's platform."""
    platform, version, abi = PLATFORM
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download",
         "--no-deps", "--only-binary=:all:", "--platform", platform, "--python-version", version,
         "--abi", abi, "--require-hashes", "--dest", str(folder),
         "--requirement", str(PAGE / "wheels.txt")],
        check=True,
    )  # fmt: skip
    return sorted(folder.glob("*.whl"))


def unpacked(wheels: list[Path]) -> dict[str, bytes]:
    """The modules of the wheels by path."""
    files: dict[str, bytes] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith((".py", ".so"))]
            files.update({name: archive.read(name) for name in names})
    return files


def python_zip(files: Mapping[str, bytes]) -> bytes:
    """One archive of files, the same bytes for the same files."""
    built = io.BytesIO()
    with zipfile.ZipFile(built, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), files[name], zipfile.ZIP_DEFLATED, 9)
    return built.getvalue()


def our_sources() -> Iterator[tuple[str, bytes]]:
    """Our modules by path, without those that a browser cannot use."""
    package = SOURCES / "layerscope"
    for path in package.rglob("*"):
        name = path.relative_to(package).as_posix()
        if path.is_file() and "__pycache__" not in path.parts and not name.startswith(UNUSED):
            yield f"layerscope/{name}", path.read_bytes()


def write_service_worker(site: Path) -> None:
    """Fill in the files that it keeps, and a version that changes with any of them."""
    names = sorted(p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file())
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + (site / name).read_bytes())
    text = (PAGE / "src" / "site" / "sw.js").read_text(encoding="utf-8")
    text = text.replace("@VERSION@", digest.hexdigest()[:16])
    listed = json.dumps(["./", *names])
    (site / "sw.js").write_text(text.replace("/* @FILES@ */ []", listed), encoding="utf-8")


def print_sizes(site: Path) -> None:
    """Print the size of every file as it is sent, compressed; fail if the site is too large."""
    total = 0
    for path in sorted(site.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            sent = min(len(data), len(gzip.compress(data, 9)))
            total += sent
            print(f"{sent:>12,}  {path.relative_to(site).as_posix()}")
    print(f"{total:>12,}  bytes in all, compressed")
    if total > MOST_BYTES:
        sys.exit(f"the site has {total:,} bytes, the limit is {MOST_BYTES:,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
