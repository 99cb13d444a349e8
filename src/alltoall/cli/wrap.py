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
            help="Saved schedules, or their messages, and the command that starts the program, "
            "such as mpiexec -n 8 ./program. FILE@64K is used for shards of 64 KiB and above.",
            show_default=False,
        ),
    ],
    min_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Leave shards, which are what one rank sends to one other, to the MPI library if "
            "they are smaller than this.",
        ),
    ] = "0",
    rank_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Lines of a node and the rank in MPI_COMM_WORLD that runs there; else rank r is "
            "the terminal r.",
        ),
    ] = None,
    mpicc: Annotated[
        str | None,
        typer.Option(
            metavar="MPICC",
            help="The compiler of the program's MPI; else the one beside the launcher, or on the "
            "PATH.",
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="When the program ends, print how many all-to-alls used a schedule, even all.",
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print no line about all-to-alls that used no schedule."),
    ] = False,
    export: Annotated[
        bool,
        typer.Option("--export", help="Print what to set in a batch script, and run nothing."),
    ] = False,
) -> None:
    """Run an MPI program that nobody changed with its all-to-alls by schedules.

    MPI_Alltoall, MPI_Alltoallv and MPI_Ialltoall of communicators with as many ranks as a schedule
    has use it; anything else falls through to the MPI library, and one line at the end says what,
    how often and why. A small C library is built for that with the program's mpicc, once. The exit
    code is that of the command.

    Example: alltoall wrap torus.schedule.json -- mpiexec -n 27 ./program
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
