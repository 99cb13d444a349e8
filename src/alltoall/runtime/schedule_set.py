"""The schedules of a program, chosen by the size of a group.

Nothing here raises: an unusable file is reported, and the program continues without it.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from alltoall.check.program.messages import check_messages
from alltoall.errors import UsageError, VerificationError
from alltoall.ir.messages import Messages
from alltoall.runtime.parts import Given, least_size, messages_for

FILES, LEAST = "ALLTOALL_SCHEDULES", "ALLTOALL_MIN_BYTES"
"""Environment variables with the files and the least size."""


@dataclass
class ScheduleSet:
    """Schedules, of which the first with a group's number of ranks serves the group.

    All-to-alls below `min_bytes` per pair, on average, are not served. Files are checked once
    before use, and `problems` lists what is wrong.
    """

    given: Sequence[Given] = ()
    min_bytes: int = 0
    problems: list[str] = field(default_factory=list)
    _read: dict[int, Messages] = field(default_factory=dict, init=False, repr=False)
    _unread: list[Given] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._unread = list(self.given)

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> "ScheduleSet":
        """Return the files, separated by colons, and the size in the environment."""
        files = [Path(each) for each in variables.get(FILES, "").split(os.pathsep) if each]
        try:
            return cls(files, least_size(variables.get(LEAST, "")))
        except UsageError as error:
            return cls(problems=[f"{LEAST}: {error}"])

    def find(self, ranks: int) -> Messages | None:
        """Return the messages for a group of this size, or None."""
        while self._unread:
            self._take(self._unread.pop(0))
        return self._read.get(ranks)

    def sizes(self) -> list[int]:
        """Return the group sizes of the schedules."""
        return sorted(self._read)

    def _take(self, given: Given) -> None:
        """Add a schedule, unless it is invalid or an earlier one has its group size."""
        try:
            found = messages_for(given)
            if found.chunks.ranks in self._read:
                return
            report = check_messages(found)
            if not report.correct:
                raise VerificationError(found.name, report.problems())
        except Exception as error:
            # Whatever is wrong with a file: a program that would run without it has to run.
            self.problems.append(f"{_named(given)}: {str(error) or type(error).__name__}")
        else:
            self._read[found.chunks.ranks] = found


def _named(given: Given) -> str:
    return given.name if isinstance(given, Messages) else f"{given!s}"
