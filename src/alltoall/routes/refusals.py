"""What a caller may not ask of a routing method, because it would be ignored."""

from collections.abc import Callable, Mapping
from typing import Any

from alltoall.errors import UsageError
from alltoall.routes import ROUTERS, USED_BY
from alltoall.routes.deadlock_free.best import METHOD

NEEDS: dict[str, tuple[str, str | None]] = {
    "slack": ("paths", "bounded"),
    "k": ("paths", "k-shortest"),
    "phase_loss": ("phases", None),
}
"""Options that mean something only with another one: its name, and its value if one only."""

Spelling = Callable[[str], str]
"""How the caller spells the name of an option."""


def as_flag(name: str) -> str:
    """Spell the name of an option as on the command line."""
    return "--" + name.replace("_", "-")


def refuse_unused(method: str, given: Mapping[str, Any], spelled: Spelling = as_flag) -> None:
    """Refuse what was asked for and means nothing to the method, or nothing without another."""
    if "last" in given and "method" in given:
        raise UsageError(
            f"{spelled('method')} {given['method']} with routes to begin with, which have a method "
            "of their own; leave one of them out"
        )
    for name in given:
        users = USED_BY.get(name, (method,))
        if method in ROUTERS.known and method not in users:
            raise UsageError(
                f"{spelled(name)} with {spelled('method')} {method}, which does not use it; leave "
                f"it out, or use it with {', '.join(users)}"
            )
        other, value = NEEDS.get(name, (name, None))
        if other not in given or value not in (None, given[other]):
            raise UsageError(
                f"{spelled(name)} without {spelled(other)}{f' {value}' if value else ''}, "
                "which it belongs to; leave it out, or add that"
            )


def deadlock_free_means(
    layers: int, given: Mapping[str, Any], spelled: Spelling = as_flag
) -> tuple[str, int]:
    """Return the method and the layers that `deadlock_free` stands for, if nothing contradicts."""
    for name, expected in (("method", METHOD), ("max_layers", layers)):
        if given.get(name, expected) != expected:
            raise UsageError(
                f"{spelled('deadlock_free')} {layers} with {spelled(name)} {given[name]}; it is "
                f"short for {spelled('method')} {METHOD} {spelled('max_layers')} {layers}, so "
                "leave one of them out"
            )
    return METHOD, layers
