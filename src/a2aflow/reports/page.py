"""One HTML page: the template, what it shows, and what draws it, all in one text.

Names in files are untrusted. None of them is ever HTML or a script: they stand in a block of JSON
that no browser executes, in which nothing can end the block, and the scripts show them as text. A
policy in the page lets nothing run but the scripts that it was made with, known by their hashes,
and lets nothing be fetched from anywhere.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from a2aflow.ir.files.text import write_text
from a2aflow.reports.library import charting_library

SCRIPTS = (
    *("start.js", "drawing.js", "network.js", "matrix.js", "pointing.js"),
    *("player.js", "pairs.js", "charts.js", "main.js"),
)
"""Our own scripts, in the order in which each needs those before it."""

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""What could begin or end a tag or an entity, as JSON writes it instead."""

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may do. Plotly puts its styles into the page, hence those may be inline."""


@dataclass(frozen=True)
class Report:
    """A page, and the numbers that are on it."""

    html: str
    facts: Mapping[str, Any]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file."""
        write_text(Path(path), self.html)

    def summary(self) -> dict[str, Any]:
        """Return the numbers as plain values, and how large the page is."""
        return {**self.facts, "bytes": len(self.html.encode())}


def page_of(content: Mapping[str, Any]) -> str:
    """Return the page that shows some content."""
    library, own = charting_library(), "\n".join(map(_part, SCRIPTS))
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in (own, library))
    return _filled(
        _part("page.html"),
        {
            "title": escape(str(content["title"])),
            "policy": POLICY.format(scripts=allowed),
            "style": _part("page.css"),
            "content": embedded(content),
            "library": library,
            "script": own,
        },
    )


def embedded(content: Mapping[str, Any]) -> str:
    """Return JSON that can stand in a page, whatever is in it."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&]", lambda found: UNSAFE[found[0]], text)


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Put values into a template, in one go: what is put in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def _part(name: str) -> str:
    """Return a file of the page."""
    return (files("a2aflow.reports") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
