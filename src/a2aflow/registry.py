"""Tables of what there is by name: imported when it is used, and open to what others register.

A room's table stands in a file that imports nothing of weight, so that the command line can name
its choices, complain about a wrong one, and start in the time that Python itself takes. An entry
says where it is, `module:attribute`, and is imported when it is asked for.

What others register is either passed to `register`, or found as an entry point of an installed
package in the table's `group`, whose names are looked up when a name is not ours.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from a2aflow.errors import UsageError

Entry = TypeVar("Entry")


def load(where: str) -> Any:
    """Import `module:attribute` and return the attribute."""
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name; `kind` is what a message calls one of them.

    `_check` is given every entry that others register, by either way, and raises if it is none.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        entries: Mapping[str, Entry | str],
        check: Callable[[str, Any], Entry],
    ) -> None:
        self.kind, self.group = kind, group
        self._entries: dict[str, Entry | str] = dict(entries)
        self._check = check
        self._searched = False

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            self._search()
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
        return name in self._entries

    def register(self, name: str, entry: Any) -> None:
        """Add an entry under a name that is not taken."""
        if name in self:
            raise UsageError(f"{self.kind} {name!r} exists already; register it by another name")
        self._entries[name] = self._check(name, entry)

    def _search(self) -> None:
        """Add what installed packages offer, once."""
        if self._searched:
            return
        self._searched = True
        for name, found in _entry_points(self.group):
            if name not in self._entries:
                self._entries[name] = self._check(name, found)


def _entry_points(group: str) -> Iterator[tuple[str, Any]]:
    """Yield what installed packages offer in a group, by name."""
    # Imported here: it takes longer than all that is needed to print a list of names.
    from importlib.metadata import entry_points  # noqa: PLC0415

    for each in entry_points(group=group):
        yield each.name, each.load()
