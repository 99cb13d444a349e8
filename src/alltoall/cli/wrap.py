"""`alltoall wrap`: an unmodified MPI program on our schedules."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from alltoall.errors import UsageError
from alltoall.runtime.public import wrap
from alltoall.runtime.wrap import file_and_size

SEPARATOR = "--"


def wrap_verb(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE... -- COMMAND...",
            help="Schedules, messages or SPECs (FILE@64K: for shards of 64 KiB and above), then "
            "the command that starts the program.",
            show_default=False,
        ),
    ],
    min_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Leave smaller shards to the MPI library.",
        ),
    ] = "0",
    rank_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Lines `node rank` (default: by the names of hosts, else in order).",
        ),
    ] = None,
    mpicc: Annotated[
        str | None,
        typer.Option(
            metavar="MPICC",
            help="The program's MPI compiler (default: beside the launcher).",
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Always print how many all-to-alls used which schedule, and who is where.",
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Never print it."),
    ] = False,
    export: Annotated[
        bool,
        typer.Option("--export", help="Print the variables for a job script; run nothing."),
    ] = False,
) -> None:
    """Run an unmodified MPI program with your schedules.

    MPI_Alltoall, MPI_Alltoallv and MPI_Ialltoall use the schedule that fits the communicator: one
    rank per terminal, or all ranks of each host. Anything else falls through to the MPI library,
    and one line at the end says how often and why. The first call builds a small C library with
    the program's mpicc. The exit code is that of the command.
    """
    files, command = _parted(words, context.obj, export)
    variables = wrap(
        files,
        min_bytes=min_bytes,
        rank_map=rank_map,
        mpicc=mpicc,
        launcher=command[0] if command else None,
        report=report,
        quiet=quiet,
        progress=lambda line: typer.echo(f"alltoall: {line}", err=True),
    )
    if export:
        typer.echo("\n".join(f"export {key}={shlex.quote(v)}" for key, v in variables.items()))
        return
    if shutil.which(command[0]) is None:
        raise UsageError(f"no command {command[0]!r}; expected a launcher, such as mpiexec")
    sys.stdout.flush()
    os.execvpe(command[0], command, {**os.environ, **variables})


def _parted(words: list[str], line: Sequence[str], export: bool) -> tuple[list[str], list[str]]:
    """Part files from the command: the parser drops the `--`, which the whole line still has."""
    command = list(line[line.index(SEPARATOR) + 1 :]) if SEPARATOR in line else []
    files = words[: len(words) - len(command)]
    if SEPARATOR not in line and not export:
        _require_separator(files, line)
    unknown = next((word for word in files if word.startswith("-")), None)
    if unknown is not None:
        raise UsageError(f"No such option: {unknown}; see alltoall wrap --help")
    if not files or not (command or export):
        raise UsageError(
            "expected FILE... -- COMMAND..., at least one schedule, and a command that starts the "
            "program, such as mpiexec -n 8 ./program"
        )
    return files, command


def _require_separator(words: Sequence[str], line: Sequence[str]) -> None:
    """Raise if a command follows files without `--`; it begins with the first that is no file."""
    first = next((word for word in words[1:] if not _is_schedule(word)), None)
    if first is not None and not first.startswith("-"):
        at = line.index(first)
        meant = shlex.join((*line[:at], SEPARATOR, *line[at:]))
        raise UsageError(f"no -- before the command; expected alltoall {meant}")


def _is_schedule(word: str) -> bool:
    """Return whether a word names a file that is no program."""
    return shutil.which(word) is None and file_and_size(word)[0].exists()
