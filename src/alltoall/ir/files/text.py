"""Reading with limits, writing without loss: all access to files."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from alltoall.errors import FormatError, UsageError

MAX_FILE_BYTES = 1 << 30
TEMPORARY_SUFFIX = ".tmp"
PREFIX_LENGTH = 32
"""Characters of a file's name in that of its temporary file, which must not become too long."""


def read_bytes(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file; refuse one that is missing or larger than `limit` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
    require_size(data, str(path), limit)
    return data


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether a file or a folder exists; impossible paths are none."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # e.g. a name too long for any file
        return False


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a regular file exists."""
    return exists(path) and Path(path).is_file()


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder exists."""
    return exists(path) and Path(path).is_dir()


def folder_names(path: Path, most: int) -> list[str]:
    """Return the sorted names of the files in a folder, without hidden ones; refuse too many."""
    try:
        found = [entry.name for entry in os.scandir(path) if entry.is_file()]
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
    if len(found) > most:
        raise FormatError(f"{path}: {len(found):,} files; expected at most {most:,}")
    return sorted(name for name in found if not name.startswith("."))


def require_size(data: bytes, where: str, limit: int) -> None:
    """Refuse data beyond the size limit of its format."""
    if len(data) > limit:
        raise FormatError(f"{where}: larger than the limit of {limit:,} bytes for this format")


def decode(data: bytes, where: str) -> str:
    """Return the text of a file; refuse text that is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        here = f"{where}: byte {error.start}"
        raise FormatError(f"{here} is not UTF-8; expected a text file") from None


def read_text(path: Path, limit: int = MAX_FILE_BYTES) -> str:
    """Return a file's text; refuse one that is missing, larger than `limit` bytes or not UTF-8."""
    return decode(read_bytes(path, limit), str(path))


def write_text(path: Path, text: str) -> None:
    """Write a text file; see `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically; see `replacing`."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file under a temporary name, renamed at the end: readers see all of it or none.

    Temporary files of killed writers are removed. A link is followed, an existing file keeps its
    mode, and a device or a pipe is written to directly.
    """
    if "\0" in str(path):
        raise UsageError(f"{str(path)!r}: cannot be written: a NUL in its name")
    try:
        target = Path(os.path.realpath(path))
        mode = _mode_of(target)
        if mode is None or stat.S_ISREG(mode):
            with _write_and_rename(target, mode) as file:
                yield file
        else:
            with target.open("wb") as file:
                yield file
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _mode_of(target: Path) -> int | None:
    """Return type and mode of a file, or None if there is none; refuse a folder."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(0, "it is a directory; name a file in it")
    return mode


@contextmanager
def _write_and_rename(target: Path, mode: int | None) -> Iterator[IO[bytes]]:
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    handle, temporary = _make_temporary(target)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            temporary.chmod(0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_temporary(target: Path) -> tuple[int, Path]:
    """Create a temporary file beside its target, locked for the life of this process."""
    import tempfile  # noqa: PLC0415 (slow to import, and only a writer needs it)

    while True:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=_prefix(target), suffix=TEMPORARY_SUFFIX
        )
        # By lock, not by process number: writers may be in other containers, or on other machines.
        with suppress(OSError):  # without locks nothing is removed either
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Another writer may have removed it before it was locked: then make another one.
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of killed writers, which are unlocked."""
    with suppress(OSError):
        for entry in os.scandir(target.parent):
            begins = entry.name.startswith(_prefix(target))
            if begins and entry.name.endswith(TEMPORARY_SUFFIX) and entry.is_file():
                with suppress(OSError), Path(entry).open("r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry).unlink()


def _prefix(target: Path) -> str:
    return f".{target.name[:PREFIX_LENGTH]}.alltoall-"


def _umask() -> int:
    """Return the process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
