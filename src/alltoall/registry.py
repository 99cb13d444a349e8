"""Tables of entries by name, imported when used and open to registration.

A table stands in a file with light imports, so that the command line can list and check names
quickly. An entry says where it is, `module:attribute`, and is imported when used.

Other packages add entries by `register`, or by an entry point in the table's `group`, which is
searched for names that are not built in. Two tables may share a group: each takes the entries that
pass its check.
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
"""Suffixes of the metadata folders of installed packages."""

NAME = re.compile(r"[a-z][a-z0-9_+-]*")
"""Allowed names: words that look like no option and no file."""


def load(where: str) -> Any:
    """Import `module:attribute` and return the attribute."""
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


def deferred(where: str) -> Callable[..., Any]:
    """Return a function that imports and calls `module:function`."""

    def call(*given: Any) -> Any:
        return load(where)(*given)

    return call


def has_signature(function: Any) -> bool:
    """Return whether parameters of a function are known; types in C, such as int, have none."""
    try:
        return callable(function) and bool(inspect.signature(function))
    except ValueError:
        return False


def returned(function: Any) -> str | None:
    """Return the name of a function's annotated return type, or None."""
    if not has_signature(function):
        return None
    said = inspect.signature(function).return_annotation
    if said is inspect.Signature.empty:
        return None
    text = said if isinstance(said, str) else getattr(said, "__name__", str(said))
    return text.strip("\"' ").rpartition(".")[2]


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name; messages call them by `kind`.

    `check` receives every registered entry. It returns the entry, None if it belongs to another
    table of the group, and raises otherwise.
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
        """Add an entry under a new name."""
        if name in self:
            raise UsageError(f"{self.kind} {name!r} exists already; register it by another name")
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{self.kind} {reprlib.repr(name)}; expected a name of small letters, digits and -"
            )
        checked = self._check(name, entry)
        if checked is None:
            raise UsageError(f"{self.kind} {name!r} is {reprlib.repr(entry)}, which does not fit")
        self._entries[name] = checked

    def remove(self, name: str) -> None:
        """Remove a registered entry; built-in entries stay."""
        if name in self.known or name not in self._entries:
            raise UsageError(f"{self.kind} {name!r} was not registered, so it cannot be removed")
        del self._entries[name]

    def _search(self) -> None:
        """Add the entry points of installed packages, once; a broken one fails only when used."""
        if self._searched:
            return
        self._searched = True
        for name, entry_point in _entry_points(self.group):
            if name in self._entries:
                continue
            try:
                found = self._check(name, entry_point.load())
            except Exception as error:
                package = getattr(entry_point.dist, "name", "an installed package")
                self._broken[name] = (
                    f"{self.kind} {name!r} of {package} ({entry_point.value}) cannot be used: "
                    f"{error}; repair or remove that package"
                )
            else:
                self._entries |= {} if found is None else {name: found}


def _entry_points(group: str) -> Iterator[tuple[str, Any]]:
    """Yield the entry points of installed packages in a group, by name."""
    # To look into the files is many times faster than to import what parses them, and nearly always
    # there is nothing to parse.
    heading = f"[{group}]".encode()

    def within(folder: str) -> bool:
        try:
            found = [each for each in Path(folder).iterdir() if each.name.endswith(PACKAGES)]
        except OSError:  # not a folder: missing, or an archive
            return Path(folder).is_file()
        files = (each / "entry_points.txt" for each in found)
        return any(heading in each.read_bytes() for each in files if each.is_file())

    if not any(map(within, sys.path)):
        return
    # Imported here: it takes longer than all that is needed to print a list of names.
    from importlib.metadata import entry_points  # noqa: PLC0415

    for each in entry_points(group=group):
        yield each.name, each
