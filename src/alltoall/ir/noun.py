"""`Noun`: the common part of all nouns.

- Equality by value: two nouns of a kind are equal if all their fields are, arrays by content. Names
and notes do not count.
- Representations: one line for a prompt, a table for a notebook, from the same facts.
- Files: JSON and pandas are imported only when a noun is first saved, drawn or turned into a frame.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from importlib import import_module
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.words import one_line

PACKAGE = "alltoall"

EPOCH = "SOURCE_DATE_EPOCH"
"""The variable that makes builds reproducible: https://reproducible-builds.org"""


@dataclass(frozen=True)
class Provenance:
    """The version, command, method and date of an answer; None if unknown.

    `gap` is the requested gap, `seconds` the duration, `date` is UTC in ISO 8601.
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
        """Return the provenance of an answer that this version gives now.

        With SOURCE_DATE_EPOCH set, the date is that one and the seconds are left out, so that equal
        calls give equal files.
        """
        stated = os.environ.get(EPOCH, "")
        time = datetime.fromtimestamp(int(stated), UTC) if stated.isdigit() else datetime.now(UTC)
        if stated.isdigit():
            known.pop("seconds", None)
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ")
        return cls(version=import_module(PACKAGE).__version__, date=date, **known)

    def known(self) -> Mapping[str, str | int | float]:
        """Return the known fields, in order."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        begin = f"{PACKAGE} {self.version}" if self.version else "an unknown version"
        when = f" on {self.date}" if self.date else ""
        return one_line(f"{begin}{when}" + (f": {self.command}" if self.command else ""))


SAMPLED = 32
"""Entries of an array in a hash."""


class Words:
    """Class attributes of a kind of noun."""

    TITLE: ClassVar[str] = ""
    """The attribute in the title."""
    BRIEF: ClassVar[tuple[str, ...]] = ()
    """The facts in the one-line representation."""


@dataclass(frozen=True, eq=False, repr=False)
class Noun(Words):
    """A frozen value; each kind defines its title, facts and rows."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, key), getattr(other, key)) for key in _value_of(self))

    def __hash__(self) -> int:
        return hash((type(self), *(_sample(getattr(self, key)) for key in _value_of(self))))

    def __repr__(self) -> str:
        facts = self._facts()
        words = ", ".join(f"{key} {facts[key]}" for key in self.BRIEF if key in facts)
        return one_line(f"<{type(self).__name__} {one_line(self._title())}: {words}>")

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415 (a table of thousands, and for notebooks only)

        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>"
            for key, text in self._details().items()
        )
        title = f"<b>{type(self).__name__}</b> {escape(one_line(self._title()))}"
        return f"<div><p>{title}</p><table>{rows}</table>{self._repr_svg_() or ''}</div>"

    def _repr_svg_(self) -> str | None:
        """Return a picture for notebooks, if a noun has one."""
        return None

    def save(self, path: str | PathLike[str], *, provenance: bool = True) -> None:
        """Save to a file for `alltoall.load`: JSON, or compact if it ends in .npz.

        Answers have a compact form; messages are always saved as the text that ranks read. The
        known provenance of an answer or topology is saved, too, unless `provenance` is False.
        """
        _file_form("artefacts").write_artefact(Path(path), self, provenance)

    def to_frame(self) -> Any:
        """Return the rows of this noun as a pandas DataFrame; pandas must be installed."""
        return frame_of(self._columns())

    def _title(self) -> str:
        """Return the title of this noun."""
        return str(attrgetter(self.TITLE)(self))

    def _facts(self) -> dict[str, str]:
        """Return short facts by label."""
        raise NotImplementedError

    def _details(self) -> dict[str, str]:
        """Return the facts of a table, including slow ones."""
        return self._facts()

    def _columns(self) -> Mapping[str, Iterable[object]]:
        """Return the rows of this noun as columns."""
        raise UsageError(f"{self!r} has no rows; take the frame of one of its parts")


def frame_of(columns: Mapping[str, Iterable[object]]) -> Any:
    """Return columns of equal length as a pandas DataFrame."""
    return _file_form("artefacts").frame_of(columns)


def drawn(topology: Any, load: Any = None) -> str | None:
    """Return the picture of a topology, with the load of its links."""
    picture: str | None = _file_form("drawing").draw_svg(topology, load)
    return picture


def _file_form(name: str) -> Any:
    """Import a module of the files on demand: files import nouns, not the reverse."""
    return import_module(f"alltoall.ir.files.{name}")


def _value_of(noun: Noun) -> tuple[str, ...]:
    return tuple(each.name for each in fields(noun) if each.compare)


def _same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)  # type: ignore[arg-type]
    return one == other


def _sample(value: object) -> object:
    """Return the hashed part of a field: equal fields have equal samples."""
    if isinstance(value, np.ndarray):
        every = max(1, value.size // SAMPLED)
        return value.shape, tuple(value.reshape(-1)[::every].tolist())
    if isinstance(value, tuple):
        return len(value), value[:1], value[-1:]
    return value
