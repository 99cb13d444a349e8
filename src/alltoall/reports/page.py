"""One HTML page: template, content, style and script in one text.

Names in files are untrusted and never become HTML or script: they stand in compressed JSON, as
base64, and the script shows them as text. The page's policy allows its own script only, known by
its hash, and no requests.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from alltoall.ir.files.text import write_text
from alltoall.ir.words import one_line

SCRIPTS = (
    *("start.js", "drawing.js", "network.js", "matrix.js", "pointing.js"),
    *("player.js", "pairs.js", "charts.js", "main.js"),
)
"""Scripts of the page, in loading order."""

POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "base-uri 'none'; form-action 'none'"
)
"""The content security policy of a page."""


@dataclass(frozen=True, repr=False)
class Report:
    """A page and the numbers on it."""

    html: str
    facts: Mapping[str, Any]

    def __repr__(self) -> str:
        return one_line(f"<Report {self.facts['title']}: {len(self.html) // 1000} KB>")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file."""
        write_text(Path(path), self.html)

    def summary(self) -> dict[str, Any]:
        """Return the numbers as plain values, with the size of the page."""
        return {**self.facts, "bytes": len(self.html.encode())}


def page_of(content: Mapping[str, Any]) -> str:
    """Return the HTML page of a report's content."""
    style, script = _part("page.css"), "\n".join(map(_part, SCRIPTS))
    return _filled(
        _part("page.html"),
        {
            "title": escape(str(content["title"])),
            "policy": POLICY.format(script=_hash(script), style=_hash(style)),
            "style": style,
            "content": embedded(content),
            "script": script,
        },
    )


def embedded(content: Mapping[str, Any]) -> str:
    """Return compressed JSON as text that is safe in HTML."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Fill a template in one pass, so that placeholders inside values are kept."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def _part(name: str) -> str:
    """Return a file of the page."""
    return (files("alltoall.reports") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
