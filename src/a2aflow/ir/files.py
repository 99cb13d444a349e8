"""Reading with limits, writing without loss: every file goes through these functions."""

import os
import tempfile
from pathlib import Path

from a2aflow.errors import FormatError, UsageError

MAX_FILE_BYTES = 1 << 30


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

    A link is followed, and what is not a regular file (a device, a pipe) is written to as it is.
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
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the process's file mode mask, which the system only tells when it is set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
