"""`--mpi R`: the same command in R processes, which share out the sources of one solve."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import typer

from alltoall.cli.show import FAILURES, described, warn
from alltoall.errors import UsageError
from alltoall.lp.settings import silent
from alltoall.runtime.mpiexec import find_mpi
from alltoall.runtime.team import Ranks, ranks_of_this_job
from alltoall.settings import Dismissed, SolveSettings, cores

RANKS_PER_CORE = 4
"""How many ranks --mpi starts at most: more only wait for each other, and a typing error would take
all memory."""

FAILED = 1
"""The exit code of ranks that end without one of their own."""

OWN_CODES = range(6)
"""What a rank of ours ends with by itself; a launcher may tell a signal by another one."""

PATIENCE = 10.0
"""Seconds that ranks have to end once they are told to, before they are killed."""

FORWARDING_SECONDS = 0.3
"""How long a launcher has to forward a message: an abort discards what is still on its way."""


def start_ranks(ranks: int, words: Sequence[str], checkpoint: Path | None) -> int:
    """Run the same command as so many ranks of this machine's MPI; return its exit code."""
    most = RANKS_PER_CORE * cores()
    if not 1 <= ranks <= most:
        raise UsageError(
            f"--mpi {ranks}; expected 1 to {most} ranks, {RANKS_PER_CORE} for each core of this "
            "machine; on more machines start them with mpiexec, without --mpi"
        )
    mpi = find_mpi()
    command = [sys.executable, "-m", "alltoall", *_without_mpi(words)]
    with subprocess.Popen(mpi.command(ranks, command), env=mpi.variables(ranks)) as process:
        try:
            code = process.wait()
        except BaseException:
            _end(process)
            raise
    if code != 0:
        kept = checkpoint is not None and checkpoint.exists()
        ways = f"{checkpoint} has the last checkpoint: the same command goes on from there"
        none = "with --checkpoint FILE, a command that is given again goes on where it was"
        warn(f"the {ranks} ranks ended with code {code}; {ways if kept else none}")
    return code if code in OWN_CODES else FAILED


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tell the ranks' starter to end them, and kill it if it does not end."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()


def _without_mpi(words: Sequence[str]) -> list[str]:
    """Return the words of a call without those that ask for ranks."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word == "--mpi":
            skip = not skip
        elif not word.startswith("--mpi="):
            kept.append(word)
    return kept


@contextmanager
def in_a_team(settings: SolveSettings) -> Iterator[SolveSettings]:
    """Give settings with the team that this process is a rank of; all ranks but one end here.

    A rank that fails says why and ends all of them. The one that goes on leaves the others when its
    process ends: what it has to print and save comes before.
    """
    team = ranks_of_this_job()
    if team is None:
        yield settings
        return
    workers = max(1, min(settings.workers, cores() // team.neighbours))
    report = settings.report if team.rank == 0 else silent
    try:
        yield replace(settings, team=team, workers=workers, report=report)
    except Dismissed:
        team.leave()
        raise typer.Exit(0) from None
    except FAILURES as error:
        _give_up(team, error)
    except Exception as error:
        warn(f"rank {team.rank}: {type(error).__name__}: {error}")
        team.give_up(FAILED)


def _give_up(team: Ranks, error: BaseException) -> None:
    told = described(error)
    warn(f"rank {team.rank} of {team.size}: {told['message']}")
    time.sleep(FORWARDING_SECONDS)
    team.give_up(int(told["code"]))
