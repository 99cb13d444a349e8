"""Reading with limits, writing without loss: every file goes through these functions."""

import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from a2aflow.errors import FormatError, UsageError

MAX_FILE_BYTES = 1 << 30
TEMPORARY_SUFFIX = ".tmp"
PREFIX_LENGTH = 32
"""How much of a file's name begins that of its temporary file, which must not become too long."""


def read_bytes(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return what a file holds, read once; refuse what is missing or larger than `limit` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise FormatError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
    require_size(data, str(path), limit)
    return data


def require_size(data: bytes, where: str, limit: int) -> None:
    """Refuse data that is larger than its format may be."""
    if len(data) > limit:
        raise FormatError(f"{where}: larger than the limit of {limit:,} bytes for this format")


def decode(data: bytes, where: str) -> str:
    """Return the text of a file; refuse what is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{where}: byte {error.start} is not UTF-8; expected a text file"
        ) from None


def read_text(path: Path, limit: int = MAX_FILE_BYTES) -> str:
    """Return a file's text; refuse what is missing, larger than `limit` bytes, or not UTF-8."""
    return decode(read_bytes(path, limit), str(path))


def write_text(path: Path, text: str) -> None:
    """Write a text file, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file under a temporary name beside it, then rename: readers see all of it or none.

    What writers of this file left that were killed goes. A link is followed, and what is not a
    regular file (a device, a pipe) is written to as it is.
    """
    target = path.resolve()
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _replace(target: Path, data: bytes) -> None:
    if target.is_dir():
        raise IsADirectoryError(0, "it is a directory; name a file in it")
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    handle, temporary = _make_temporary(target)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_temporary(target: Path) -> tuple[int, Path]:
    """Make a file that is locked as long as we live, beside its target; return it open."""
    while True:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=_prefix(target), suffix=TEMPORARY_SUFFIX
        )
        # By lock, not by process number: writers may be in other containers, or on other machines.
        with suppress(OSError):  # without locks nothing is swept either
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Before it was locked, others may have swept it away; then, another one.
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _sweep(target: Path) -> None:
    """Remove what writers of a file left when they were killed: nobody holds the lock of it."""
    # What cannot be listed, opened or locked is left alone.
    with suppress(OSError):
        for entry in os.scandir(target.parent):
            begins = entry.name.startswith(_prefix(target))
            if begins and entry.name.endswith(TEMPORARY_SUFFIX) and entry.is_file():
                _remove_unlocked(Path(entry))


def _remove_unlocked(temporary: Path) -> None:
    with suppress(OSError), temporary.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink()


def _prefix(target: Path) -> str:
    return f".{target.name[:PREFIX_LENGTH]}.a2aflow-"


def _umask() -> int:
    """Return the process's file mode mask, which the system only tells when it is set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
