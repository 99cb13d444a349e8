"""What a target that somebody registers has to have, whatever it takes."""

from typing import Any, Protocol

from a2aflow.errors import UsageError

GROUP = "a2aflow.targets"
"""The entry points of installed packages that are targets."""


class AnyTarget(Protocol):
    """What targets for schedules and for routes share."""

    @property
    def emit(self) -> Any:
        """Write a noun as text."""

    @property
    def read(self) -> Any:
        """Read such a text."""

    @property
    def suffix(self) -> str:
        """What the names of its files end with."""

    @property
    def sign(self) -> str:
        """What its files have, and others have not, near their beginning."""


def require_target(name: str, target: AnyTarget) -> None:
    """Raise unless files of a target can be named, written, told apart and read back."""
    if not callable(target.emit) or not callable(target.read):
        raise UsageError(f"target {name!r}: emit and read are to be functions")
    if not target.suffix.startswith(".") or not target.sign:
        raise UsageError(
            f"target {name!r}: suffix {target.suffix!r} and sign {target.sign!r}; expected a "
            "suffix that begins with a dot, and a text that only its files have near the beginning"
        )
