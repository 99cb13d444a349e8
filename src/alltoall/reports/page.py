"""One HTML page: the template, what it shows, and what draws it, all in one text.

Names in files are untrusted. None of them is ever HTML or a script: they stand in a block of
compressed JSON, as base64, and the script shows them as text. A policy in the page lets nothing run
but the script that it was made with, known by its hash, and lets nothing be fetched from anywhere.
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

SCRIPTS = (
    *("start.js", "drawing.js", "network.js", "matrix.js", "pointing.js"),
    *("player.js", "pairs.js", "charts.js", "main.js"),
)
"""Our own scripts, in the order in which each needs those before it."""

POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
    "base-uri 'none'; form-action 'none'"
)
"""What the page may do: run its script, and look like its style."""


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
    """Return compressed JSON as text that can stand in a page, whatever is in it."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Put values into a template, in one go: what is put in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], template)


def _part(name: str) -> str:
    """Return a file of the page."""
    return (files("alltoall.reports") / "page" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
