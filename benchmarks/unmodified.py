"""Programs that nobody here wrote, as they are and under `alltoall wrap`: results, calls, time.

    python benchmarks/unmodified.py [--spec hypercube:3] [--mpiexec /usr/bin/mpiexec]
    python benchmarks/unmodified.py --rate 400mbit --only hpcc

Debian's packages hpcc (MPI_Alltoall from C in its MPIFFT), quantum-espresso with its -data
(mpi_alltoall_ and mpi_alltoallv_ from Fortran in pw.x), libfftw3-mpi-dev and libfftw3-dev (a
transform by FFTW, which may choose sends of its own instead), with libopenmpi-dev, are what this
knows; what is not installed is left out, and said. Ranks share this machine, so the ratio of times
says what the schedule costs where no network is gained; with --rate they are on the nodes of an
emulated fabric of such links (root on Linux), as they are and under `wrap` over the same links.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import alltoall
from alltoall.ir.quantities import bytes_per_second
from alltoall.testbed.launch import temporary_bed

REPORT = re.compile(r"alltoall: (\d+) of (\d+) all-to-alls? used the schedule \((\d+) bytes")
SECONDS = 900
PSEUDO = Path("/usr/share/espresso/pseudo")
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMP_NUM_THREADS": "1",
}
"""Open MPI refuses root, and more ranks than cores, unless told."""

HPL = """{name}
alltoall
HPL.out
8
1
200
1
20
0
1
2
{columns}
16.0
1
2
1
4
1
2
1
1
1
1
1
1
2
64
0
0
1
8
-
0
1200
0
40
"""

SILICON = """&control
  calculation = 'scf', prefix = 'si', outdir = './', pseudo_dir = '{pseudo}'
/
&system
  ibrav = 2, celldm(1) = 10.2, nat = 2, ntyp = 1, ecutwfc = 24.0
/
&electrons
/
ATOMIC_SPECIES
  Si 28.086 {file}
ATOMIC_POSITIONS alat
  Si 0.00 0.00 0.00
  Si 0.25 0.25 0.25
K_POINTS automatic
  1 1 1 0 0 0
"""

TRANSPOSE = """
#include <fftw3-mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    ptrdiff_t rows, first, n = 240;
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    ptrdiff_t size = fftw_mpi_local_size_2d(n, n, MPI_COMM_WORLD, &rows, &first);
    fftw_complex *data = fftw_alloc_complex(size);
    fftw_plan plan = fftw_mpi_plan_dft_2d(n, n, data, data, MPI_COMM_WORLD, FFTW_FORWARD,
                                          FFTW_MEASURE);
    for (ptrdiff_t i = 0; i < rows * n; i++)
        data[i][0] = (double)((first * n + i) % 97), data[i][1] = 0;
    fftw_execute(plan);
    double sum = 0, all;
    for (ptrdiff_t i = 0; i < rows * n; i++)
        sum += data[i][0] * ((first * n + i) % 31) - data[i][1] * ((first * n + i) % 17);
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank)
        printf("%.6f\\n", all);
    MPI_Finalize();
}
"""


@dataclass(frozen=True)
class Program:
    """A program: how it is prepared in a folder, and the result that it comes to there."""

    name: str
    prepare: Callable[[Path, int], list[str] | None]
    result: Callable[[Path, str], str]


def hpcc(folder: Path, ranks: int) -> list[str] | None:
    """Write a small problem for the HPC Challenge."""
    found = shutil.which("hpcc")
    (folder / "hpccinf.txt").write_text(HPL.format(name="HPL", columns=ranks // 2))
    return [found] if found else None


def hpcc_result(folder: Path, _: str) -> str:
    """Return whether the error of its FFT is of rounding."""
    error = re.search(r"MPIFFT_maxErr=(\S+)", (folder / "hpccoutf.txt").read_text())
    return "FFT right" if error and 0 <= float(error[1]) < 1e-12 else "FFT wrong"


def pw(folder: Path, _: int) -> list[str] | None:
    """Write a crystal of silicon for Quantum ESPRESSO."""
    found, files = shutil.which("pw.x"), sorted(PSEUDO.glob("Si.*"))
    if not found or not files:
        return None
    (folder / "si.in").write_text(SILICON.format(pseudo=PSEUDO, file=files[0].name))
    return [found, "-in", "si.in"]


def pw_result(_: Path, said: str) -> str:
    """Return the energy of the crystal."""
    energy = re.search(r"^!\s+total energy\s+=\s+(\S+)", said, re.MULTILINE)
    return f"{float(energy[1]):.6f} Ry" if energy else "no energy"


def fftw(folder: Path, _: int) -> list[str] | None:
    """Compile a two-dimensional transform."""
    (folder / "fft.c").write_text(TRANSPOSE)
    command = ["/usr/bin/mpicc", "-o", "fft", "fft.c", "-lfftw3_mpi", "-lfftw3", "-lm"]
    try:
        ended = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    except OSError:
        return None
    return None if ended.returncode else [str(folder / "fft")]


PROGRAMS = (
    Program("hpcc", hpcc, hpcc_result),
    Program("pw.x", pw, pw_result),
    Program("FFTW", fftw, lambda _, said: said.split("\n")[0]),
)


def run(command: list[str], folder: Path) -> tuple[float, str]:
    """Run a command in a folder; return its seconds and what it said."""
    began = time.perf_counter()
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr[-2000:]}")
    return time.perf_counter() - began, ended.stdout + ended.stderr


@contextmanager
def placed(schedule: alltoall.Schedule, rate: str | None) -> Iterator[list[str]]:
    """Give what takes a rank to its node of a fabric; nothing without a rate."""
    if rate is None:
        yield []
        return
    with temporary_bed(schedule.problem.topology, bytes_per_second(rate)) as bed:
        yield bed.prefix()


def main() -> None:
    """Print one line for every program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", default="hypercube:3")
    parser.add_argument("--mpiexec", default="/usr/bin/mpiexec")
    parser.add_argument("--mpicc", help="of the same MPI, if it is not beside its mpiexec")
    parser.add_argument("--rate", help="of the links of a fabric to run on, such as 400mbit")
    parser.add_argument("--only", nargs="*", default=[each.name for each in PROGRAMS])
    asked = parser.parse_args()
    schedule = alltoall.schedule(asked.spec)
    ranks = len(schedule.problem.topology.terminals)
    print(f"{asked.spec}, {ranks} ranks of {asked.mpiexec}")
    print(f"{'program':8}{'used':>7}{'of':>8}{'bytes':>12}{'time ratio':>12}  result")
    with placed(schedule, asked.rate) as prefix:
        start = [asked.mpiexec, "-n", str(ranks), *prefix]
        wrap = [sys.executable, "-m", "alltoall", "wrap", "schedule.json", "--report"]
        wrap += ["--mpicc", str(Path(asked.mpicc).absolute())] if asked.mpicc else []
        for program in PROGRAMS:
            if program.name in asked.only:
                compare(program, schedule, start, wrap)


def compare(
    program: Program, schedule: alltoall.Schedule, start: list[str], wrap: list[str]
) -> None:
    """Run a program as it is and under `wrap`; print what became of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = program.prepare(folder, len(schedule.problem.topology.terminals))
        if command is None:
            print(f"{program.name:8} is not installed")
            return
        plain, said = run([*start, *command], folder)
        before = program.result(folder, said)
        schedule.save(folder / "schedule.json")
        seconds, said = run([*wrap, "--", *start, *command], folder)
        after, found = program.result(folder, said), REPORT.search(said)
        used, total, moved = found.groups() if found else ("?", "?", "?")
        same = f"{after}, the same" if after == before else f"{before} became {after}"
        row = f"{program.name:8}{used:>7}{total:>8}{moved:>12}{seconds / plain:12.2f}"
        print(f"{row}  {same}", flush=True)


if __name__ == "__main__":
    main()
