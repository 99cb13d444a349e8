"""What a target can be asked for."""

from dataclasses import dataclass

from a2aflow.errors import UsageError


@dataclass(frozen=True)
class Options:
    """Settings of `lower`; a target ignores those that mean nothing to it."""

    channels: int = 1
    """On how many channels the schedule runs at once, each with its part of every shard."""
    runtime: str = "msccl"
    """Whose limits hold for MSCCL files."""
    protocol: str = "Simple"
    """How the runtime moves data: `Simple`, `LL` or `LL128`."""
    max_bytes: int = 1 << 30
    """The largest send buffer an MSCCL file is used for; scratch memory is in proportion to it."""
    min_bytes: int = 0
    """The smallest send buffer an MSCCL file is used for."""


def chosen(kind: str, name: str, known: tuple[str, ...]) -> str:
    """Return `name` if it is one of the known ones."""
    if name not in known:
        raise UsageError(f"{kind} {name!r}; expected one of {', '.join(known)}")
    return name
