"""What is handed out: the same bytes from the same sources, and nothing but the package."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import alltoall

ROOT = Path(__file__).parent.parent

DATE = "1700000000"


def _built(where: Path, target: str) -> Path:
    """Build a distribution as `make dist` does, and return its file."""
    command = [
        *(sys.executable, "-m", "build", "--no-isolation", f"--{target}", "--outdir", str(where)),
        *(() if target == "sdist" else (f"-Cbuild-dir={where.parent / 'build'}",)),
    ]
    dated = {**os.environ, "SOURCE_DATE_EPOCH": DATE}
    subprocess.run(command, cwd=ROOT, env=dated, check=True, capture_output=True)
    [found] = where.iterdir()
    return found


in_ci = pytest.mark.skipif(
    os.environ.get("CI") != "true", reason="two builds of the core take a minute; CI=true runs them"
)


@pytest.mark.parametrize("target", [pytest.param("wheel", marks=in_ci), "sdist"])
def test_builds_are_the_same_to_the_byte(target: str, tmp_path: Path) -> None:
    """Two builds, under another umask and time of day, give one file; the wheel has no extras."""
    first = _built(tmp_path / "first", target)
    before = os.umask(0o077)
    try:
        again = _built(tmp_path / "again", target)
    finally:
        os.umask(before)
    assert first.name == again.name
    assert first.read_bytes() == again.read_bytes()
    if target == "wheel":
        _require_the_package_and_what_it_compiles(first)
        _require_an_answer_without_a_compiler(first, tmp_path / "empty")


def _require_the_package_and_what_it_compiles(path: Path) -> None:
    """Check for Python, the engine in C and the mark of types; and for no tests and no caches."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        [metadata] = [name for name in names if name.endswith("METADATA")]
        said = wheel.read(metadata).decode()
    assert "alltoall/py.typed" in names
    core = [Path(name).name.split(".")[0] for name in names if name.startswith("alltoall/core/")]
    assert sorted(core) == ["__init__", "_core", "_core"]  # Python, the extension and its types
    assert any(
        name.startswith("alltoall/runtime/engine/") and name.endswith(".c") for name in names
    )
    assert f"Version: {alltoall.__version__}\n" in said
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]
    for version in ("3.11", "3.12", "3.13"):
        assert f"Classifier: Programming Language :: Python :: {version}" in said


EXAMPLE = ("solve", "torus:3x3x3", "--host-bandwidth", "4", "--link-bandwidth", "25Gbps", "--json")
"""The README's first."""


def _require_an_answer_without_a_compiler(wheel: Path, environment: Path) -> None:
    """Install into an empty environment and run the example there, with no other program."""
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    alone = {**os.environ, "PATH": str(environment / "bin")}
    install = ["-m", "pip", "install", "--quiet", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    commands = {"python": install, "alltoall": EXAMPLE}
    for program, words in commands.items():
        command = [str(environment / "bin" / program), *words]
        done = subprocess.run(command, env=alone, cwd=environment, check=True, capture_output=True)
    assert json.loads(done.stdout)["time"] == pytest.approx(13.5)


def test_a_citation_names_this_version() -> None:
    """`__version__` is the one place that says it; the citation repeats it."""
    assert f"\nversion: {alltoall.__version__}\n" in (ROOT / "CITATION.cff").read_text()
