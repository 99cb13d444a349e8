"""The documentation site builds without a warning, needs no network, and can be searched."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from browser import browser
from doc_pages import ROOT

LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]*\bsrc="(https?:)?//|<link[^>]*\brel="stylesheet"[^>]*\bhref="(https?:)?//'
)
"""What a browser would fetch from elsewhere when it opens a page."""

SEARCH = """
const field = document.querySelector(".md-search__input");
const shown = document.querySelector("[data-md-toggle=search]");
if (field && shown) {
  if (!shown.checked) shown.click();
  field.value = "Combinatorica";
  field.dispatchEvent(new Event("keyup", { bubbles: true }));
}
return [...document.querySelectorAll(".md-search-result__link")].map((each) => each.href);
"""
"""Open the search, type a word that one page has, and return the addresses of the results."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; warnings are errors."""
    folder = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def test_the_site_needs_nothing_from_elsewhere(site: Path) -> None:
    """Scripts, fonts, styles and pictures are all in the site."""
    pages = sorted(site.rglob("*.html"))
    names = {str(page.relative_to(site)) for page in pages}
    assert {"index.html", "gallery.html", "results.html"} <= names
    assert not [page for page in pages if LOADED.search(page.read_text())]


def test_the_site_begins_with_the_readme(site: Path) -> None:
    """Its links lead to pages of the site."""
    text = (site / "index.html").read_text()
    assert 'href="tutorials/cluster.html"' in text
    assert 'src="img/rack.svg"' in text
    assert "(docs/" not in text
    assert 'href="docs/' not in text


def test_the_reference_has_all_verbs_and_functions(site: Path) -> None:
    """What is generated has content."""
    reference = site / "reference"
    assert "alltoall.solve(" in (reference / "python.html").read_text()
    assert "--host-bandwidth" in (reference / "options.html").read_text()
    assert "genkautz" in (reference / "families.html").read_text()
    assert "opensm" in (reference / "targets.html").read_text()


def test_pages_opened_as_files_can_be_searched(site: Path, tmp_path: Path) -> None:
    """A browser that opens a file finds the one page that has a word."""
    with browser(tmp_path) as opened:
        opened.get((site / "index.html").as_uri())
        found: list[str] = []
        for _ in range(600):
            found = opened.execute_script(SEARCH)
            if found:
                break
            opened.execute_async_script("setTimeout(arguments[0], 100)")
        assert [each for each in found if "methods.html" in each], found
