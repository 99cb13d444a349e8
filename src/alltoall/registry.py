"""Tables of what there is by name: imported when it is used, and open to what others register.

A room's table stands in a file that imports nothing of weight, so that the command line can name
its choices, complain about a wrong one, and start in the time that Python itself takes. An entry
says where it is, `module:attribute`, and is imported when it is asked for.

What others register is either passed to `register`, or found as an entry point of an installed
package in the table's `group`, whose names are looked up when a name is not ours. Two tables may
share a group: each takes what its check takes.
"""

import inspect
import re
import reprlib
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from alltoall.errors import MissingComponentError, UsageError

Entry = TypeVar("Entry")

PACKAGES = (".dist-info", ".egg-info")
"""How the folders end in which installers say what a package is."""

NAME = re.compile(r"[a-z][a-z0-9_+-]*")
"""What an entry may be called: a word of the command line that no option or file looks like."""


def load(where: str) -> Any:
    """Import `module:attribute` and return the attribute."""
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


def deferred(where: str) -> Callable[..., Any]:
    """Return a function that imports `module:function` when it is called, and calls that."""

    def call(*given: Any) -> Any:
        return load(where)(*given)

    return call


def returned(function: Any) -> str | None:
    """Return the name of the type that a function says it returns, if it is one and says so."""
    if not callable(function):
        return None
    said = inspect.signature(function).return_annotation
    if said is inspect.Signature.empty:
        return None
    text = said if isinstance(said, str) else getattr(said, "__name__", str(said))
    return text.strip("\"' ").rpartition(".")[2]


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name; `kind` is what a message calls one of them.

    `check` is given every entry that others register, by either way. It returns the entry, or None
    for one that belongs to another table of the same group, and raises if it is none at all.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        entries: Mapping[str, Entry | str],
        check: Callable[[str, Any], Entry | None],
    ) -> None:
        self.kind, self.group = kind, group
        self.known = tuple(entries)
        """The names of what is ours, without a look at what others have installed."""
        self._entries: dict[str, Entry | str] = dict(entries)
        self._check = check
        self._searched = False
        self._broken: dict[str, str] = {}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            self._search()
        if name in self._broken:
            raise MissingComponentError(self._broken[name])
        entry = self._entries[name]
        if isinstance(entry, str):
            self._entries[name] = entry = cast("Entry", load(entry))
        return entry

    def __iter__(self) -> Iterator[str]:
        self._search()
        return iter(self._entries)

    def __len__(self) -> int:
        self._search()
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            self._search()
        return name in self._entries or name in self._broken

    def register(self, name: str, entry: Any) -> None:
        """Add an entry under a name that is not taken."""
        if name in self:
            raise UsageError(f"{self.kind} {name!r} exists already; register it by another name")
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{self.kind} {reprlib.repr(name)}; expected a name of small letters, digits and -"
            )
        checked = self._check(name, entry)
        if checked is None:
            raise UsageError(f"{self.kind} {name!r} is {reprlib.repr(entry)}, which is no such one")
        self._entries[name] = checked

    def remove(self, name: str) -> None:
        """Take out an entry that was registered; what is ours stays."""
        if name in self.known or name not in self._entries:
            raise UsageError(f"{self.kind} {name!r} was not registered, so it cannot be removed")
        del self._entries[name]

    def _search(self) -> None:
        """Add what installed packages offer, once."""
        if self._searched:
            return
        self._searched = True
        for name, entry_point in _entry_points(self.group):
            if name not in self._entries:
                self._add(name, entry_point)

    def _add(self, name: str, entry_point: Any) -> None:
        """Add an entry point; one that is broken fails when it is used, and not before."""
        try:
            found = self._check(name, entry_point.load())
        except Exception as error:
            package = getattr(entry_point.dist, "name", "an installed package")
            self._broken[name] = (
                f"{self.kind} {name!r} of {package} ({entry_point.value}) cannot be used: "
                f"{error}; repair or remove that package"
            )
            return
        if found is not None:
            self._entries[name] = found


def _entry_points(group: str) -> Iterator[tuple[str, Any]]:
    """Yield what installed packages offer in a group, by name."""
    # To look into the files is many times faster than to import what parses them, and nearly always
    # there is nothing to parse.
    heading = f"[{group}]".encode()

    def within(folder: str) -> bool:
        try:
            found = [each for each in Path(folder).iterdir() if each.name.endswith(PACKAGES)]
        except OSError:  # not a folder: missing, or an archive
            return Path(folder).is_file()
        return any(heading in _entry_points_of(each) for each in found)

    if not any(map(within, sys.path)):
        return
    # Imported here: it takes longer than all that is needed to print a list of names.
    from importlib.metadata import entry_points  # noqa: PLC0415

    for each in entry_points(group=group):
        yield each.name, each


def _entry_points_of(package: Path) -> bytes:
    try:
        return (package / "entry_points.txt").read_bytes()
    except OSError:
        return b""
