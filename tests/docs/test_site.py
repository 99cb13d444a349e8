"""The documentation site builds without a warning and without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

from doc_pages import ROOT

LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]*\bsrc="(https?:)?//|<link[^>]*\brel="stylesheet"[^>]*\bhref="(https?:)?//'
)
"""What a browser would fetch from elsewhere when it opens a page."""


def test_the_site_builds_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Warnings are errors; scripts, fonts, styles and pictures are all in the site."""
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    names = {str(page.relative_to(tmp_path)) for page in pages}
    assert {"index.html", "reference/python.html", "gallery.html", "results.html"} <= names
    assert not [page for page in pages if LOADED.search(page.read_text())]
    assert (tmp_path / "reference" / "python.html").read_text().count("alltoall.solve(") > 0
