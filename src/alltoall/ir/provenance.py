"""`Provenance`: where an answer came from, apart from what it says.

It is saved beside an answer and never part of it: answers compare equal whatever they came from,
and without it the files of equal answers are the same, byte by byte.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from alltoall.ir.words import one_line

PACKAGE = "alltoall"


@dataclass(frozen=True)
class Provenance:
    """What was asked of which version, how it was answered, and when; None where it is not known.

    `gap` is the gap that was asked for, `seconds` what it took, `date` in UTC as ISO 8601 has it.
    """

    version: str | None = None
    command: str | None = None
    method: str | None = None
    seed: int | None = None
    solver: str | None = None
    gap: float | None = None
    seconds: float | None = None
    date: str | None = None

    @classmethod
    def of_now(cls, **known: Any) -> "Provenance":
        """Return what is known of an answer that this version gives now."""
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return cls(version=import_module(PACKAGE).__version__, date=date, **known)

    def known(self) -> Mapping[str, str | int | float]:
        """Return what is known, in the order of the fields."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        begin = f"{PACKAGE} {self.version}" if self.version else "an unknown version"
        when = f" on {self.date}" if self.date else ""
        return one_line(f"{begin}{when}" + (f": {self.command}" if self.command else ""))
