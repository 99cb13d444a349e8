"""Build the engine with the user's mpicc: once for each MPI, kept in the user's cache.

The build makes two libraries and a program. The engine is linked to the MPI library; the preloaded
library is not, because launchers and shells of a job load it, too. The program is a rank that
checks and times an all-to-all. Libraries without MPI are built with the user's cc
(`build_library`).
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from alltoall.errors import MissingComponentError, UsageError

SOURCES = Path(__file__).parent
CORE = ("plan.c", "exchange.c", "team.c")
ENGINE = (
    *CORE,
    *("hosted.c", "entries.c", "sides.c", "interpose.c", "tally.c", "fortran.c"),
)
PRELOAD = ("preload.c",)
RANK = ("rank.c", *CORE)
HEADERS = ("engine.h", "team.h", "hosted.h", "entries.h", "sides.h", "calls.h", "tally.h")
FLAGS = ("-O2", "-std=gnu11", "-D_GNU_SOURCE", "-pthread")
LIBRARY = ("-fPIC", "-shared")
ONLY_NEEDED = (*LIBRARY, "-fvisibility=hidden", "-Wl,--as-needed")
"""Linker flag of the preloaded library, which must not load the MPI library."""

COMPILE_SECONDS = 120
TOLD_LINES = 12
_LIBMPI = re.compile(r"\(NEEDED\).*\[(libmpi[^\]]*)\]")


@dataclass(frozen=True)
class Engine:
    """The files of a built engine, and the linker name of its MPI library."""

    engine: Path
    preload: Path
    rank: Path
    libmpi: str


def cache_folder() -> Path:
    """Return the folder of built engines."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "alltoall"


def find_mpicc(
    choice: str | None = None, launcher: str | None = None, kind: str | None = None
) -> Path:
    """Find the compiler of an MPI: the named one, that beside a launcher, or that on the PATH.

    If two MPIs share a folder, a launcher may be beside the other's compiler: `kind` (`mpich`,
    `openmpi`) skips the others.
    """
    if choice is not None:
        found = shutil.which(choice)
        if found is None:
            raise UsageError(f"{choice} is not an executable file; expected the path of an mpicc")
        return Path(found)
    beside = shutil.which(launcher) if launcher else None
    folders = [str(Path(beside).resolve().parent), str(Path(beside).parent)] if beside else []
    for folder in (*folders, None):
        found = shutil.which("mpicc", path=folder)
        if found and kind in (None, _kind_of(found)):
            return Path(found)
    wanted = f"mpicc of {kind}" if kind else "mpicc"
    raise MissingComponentError(
        f"no {wanted} beside the launcher or on the PATH; it comes with the MPI of the program: "
        "load its module, install its development package, or name it (--mpicc)"
    )


def _kind_of(mpicc: str) -> str:
    """Return the kind of a compiler: only Open MPI's knows this option; others are as MPICH's."""
    try:
        _run([mpicc, "--showme:version"])
    except MissingComponentError:
        return "mpich"
    return "openmpi"


def build(mpicc: Path) -> Engine:
    """Return the engine for the MPI of a compiler, built if it is not cached."""
    folder = cache_folder() / f"engine-{_sources()}-{_digest(str(mpicc).encode(), _means(mpicc))}"
    if _built(folder) is None:
        with _place_beside(folder) as place:
            new = place / folder.name
            new.mkdir()
            _compile(mpicc, new / "engine.so", ENGINE, LIBRARY)
            _compile(mpicc, new / "rank", RANK, ())
            _compile(mpicc, new / "preload.so", PRELOAD, ONLY_NEEDED)
            (new / "libmpi").write_text(_libmpi(new / "engine.so"), encoding="utf-8")
            with suppress(OSError):  # another process was faster
                new.rename(folder)
    found = _built(folder)
    if found is None:
        raise MissingComponentError(f"{folder} cannot be written; set XDG_CACHE_HOME to a folder")
    return found


def build_library(source: Path) -> Path:
    """Return the library of a source without MPI, built if it is not cached."""
    name = f"{source.stem}-{_digest(source.read_bytes(), ' '.join(FLAGS).encode())}.so"
    target = cache_folder() / name
    if not target.exists():
        compiler = shutil.which(os.environ.get("CC") or "cc")
        if compiler is None:
            raise MissingComponentError(
                "no C compiler: no cc on the PATH, and CC names none; install one, or set CC"
            )
        with _place_beside(target) as place:
            _run([compiler, *FLAGS, *LIBRARY, "-o", str(place / name), str(source)])
            (place / name).rename(target)
    return target


@contextmanager
def _place_beside(target: Path) -> Iterator[Path]:
    """Yield a temporary folder from which what was built can be renamed to a target."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as place:
            yield Path(place)
    except OSError as error:
        raise MissingComponentError(
            f"{target} cannot be written ({error.strerror}); set XDG_CACHE_HOME to a folder"
        ) from None


def built_for(libmpi: str) -> Engine | None:
    """Return the built engine for an MPI library, or None."""
    folders = sorted(cache_folder().glob(f"engine-{_sources()}-*"))
    return next((each for each in map(_built, folders) if each and each.libmpi == libmpi), None)


def _built(folder: Path) -> Engine | None:
    library = folder / "libmpi"
    if not library.exists():
        return None
    name = library.read_text(encoding="utf-8")
    return Engine(folder / "engine.so", folder / "preload.so", folder / "rank", name)


def _sources() -> str:
    names = (*HEADERS, *ENGINE, *PRELOAD, *RANK)
    return _digest(*((SOURCES / name).read_bytes() for name in names))


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _means(mpicc: Path) -> bytes:
    """Return the output of a compiler's dry run, which identifies the MPI."""
    return _run([str(mpicc), "-show"]).encode()


def _compile(mpicc: Path, target: Path, sources: tuple[str, ...], flags: tuple[str, ...]) -> None:
    paths = [str(SOURCES / name) for name in sources]
    _run([str(mpicc), *FLAGS, *flags, "-o", str(target), *paths, "-ldl"])


def _libmpi(engine: Path) -> str:
    """Return the name of the MPI library that the engine was linked to."""
    found = _LIBMPI.search(_run(["readelf", "-d", str(engine)]))
    if found is None:
        raise MissingComponentError(
            "the mpicc links no shared libmpi; a program's calls can only be taken if it does"
        )
    return found[1]


def _run(command: list[str]) -> str:
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingComponentError(f"{command[0]} cannot be used: {error}") from None
    if ended.returncode:
        told = ended.stderr.splitlines()[-TOLD_LINES:]
        raise MissingComponentError(f"{command[0]} failed ({ended.returncode}):", *told)
    return ended.stdout
