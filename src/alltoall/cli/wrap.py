"""`alltoall wrap`: an unmodified MPI program on our schedules."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import typer

from alltoall.cli.options import as_verb
from alltoall.errors import UsageError
from alltoall.ir.files.text import exists
from alltoall.runtime.wrap import file_and_size, wrap

SEPARATOR = "--"


def _verb(context: typer.Context, files: list[str], export: bool, **given: Any) -> None:
    files, command = _parted(files, context.obj, export)
    variables = wrap(files, **given, launcher=command[0] if command else None, progress=_say)
    if export:
        typer.echo("\n".join(f"export {key}={shlex.quote(v)}" for key, v in variables.items()))
        return
    if shutil.which(command[0]) is None:
        raise UsageError(f"no command {command[0]!r}; expected a launcher, such as mpiexec")
    sys.stdout.flush()
    os.execvpe(command[0], command, {**os.environ, **variables})


def _say(line: str) -> None:
    typer.echo(f"alltoall: {line}", err=True)


def _parted(words: list[str], line: Sequence[str], export: bool) -> tuple[list[str], list[str]]:
    """Separate files from the command at `--`, which the parser drops from the words."""
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
    """Raise if a command follows files without `--`; the first word that is no file starts it."""
    first = next((word for word in words[1:] if not _is_schedule(word)), None)
    if first is not None and not first.startswith("-"):
        at = line.index(first)
        meant = shlex.join((*line[:at], SEPARATOR, *line[at:]))
        raise UsageError(f"no -- before the command; expected alltoall {meant}")


def _is_schedule(word: str) -> bool:
    """Return whether a word names a file that is no program."""
    return shutil.which(word) is None and exists(file_and_size(word)[0])


wrap_verb = as_verb(_verb, wrap, "export")
