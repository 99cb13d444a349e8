"""Every error that alltoall raises on purpose.

::

    AlltoallError
    ├── UsageError             exit 2   the words of the call: unknown family, option, method, unit
    ├── InputError             exit 3   the input is not a valid problem
    │   ├── TopologyError               nodes, links, capacities, terminals, connectivity
    │   ├── DemandError                 the demand matrix
    │   ├── FormatError                 a file that cannot be read as what it claims to be
    │   └── LimitError                  a program that a runtime cannot take
    ├── TimeLimitError         exit 3   the time limit came before any answer
    ├── VerificationError      exit 4   an artefact does not hold what it claims
    └── MissingComponentError  exit 5   an optional dependency or tool is not installed

Each message says what was found, what was expected, and what to do about it. It may quote files,
so control characters and line ends in it are shown as escapes.
"""

from collections.abc import Sequence


def escaped(text: str, kept: str = "") -> str:
    """Escape everything unprintable, line ends too, except the characters in `kept`."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


class AlltoallError(Exception):
    """Base of all errors raised on purpose: a message, and quoted program lines.

    The command line returns `exit_code`.
    """

    exit_code = 1

    def __str__(self) -> str:
        return "\n    ".join(escaped(str(each)) for each in self.args)


class UsageError(AlltoallError):
    """The call itself is wrong: an unknown family, parameter, method, solver or unit."""

    exit_code = 2


class InputError(AlltoallError):
    """The input does not describe a valid problem."""

    exit_code = 3


class TopologyError(InputError):
    """The topology is not sound."""


class DemandError(InputError):
    """The demand is malformed or does not fit the topology."""


class FormatError(InputError):
    """A file is not what it claims to be: malformed, truncated or over a limit."""


class LimitError(InputError):
    """A program does not fit a runtime; the message names the limit and a way out."""


class TimeLimitError(AlltoallError):
    """The time limit passed before any answer; with more time there may be one."""

    exit_code = 3


class VerificationError(AlltoallError):
    """A check found violations; all of them are in `violations`."""

    exit_code = 4

    def __init__(self, subject: str, violations: Sequence[str], quoted: Sequence[str] = ()) -> None:
        super().__init__(subject, violations, quoted)
        self.subject = subject
        self.violations = tuple(map(escaped, violations))
        self.quoted = tuple(map(escaped, quoted))

    def __str__(self) -> str:
        lines = [f"{escaped(self.subject)} fails verification:"]
        lines += [f"  - {each}" for each in self.violations]
        return "\n".join([*lines, *(f"    {each}" for each in self.quoted)])


class MissingComponentError(AlltoallError):
    """Something optional that this call needs is not installed."""

    exit_code = 5


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra; the package is not on the index yet."""
    return f"pip install '.[{extra}]' in a clone of alltoall"
