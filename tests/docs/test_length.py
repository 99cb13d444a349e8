"""The documentation stays short: a limit on pages and words, and a purpose in every first line."""

import re
from pathlib import Path

import alltoall
from doc_pages import ROOT

MOST_README_WORDS = 600
MOST_PAGES = 25
MOST_WORDS = 22_000

DOCS = sorted((ROOT / "docs").rglob("*.md"))


def words(path: Path) -> int:
    """Count words as `wc -w` does."""
    return len(path.read_text().split())


def test_the_readme_is_short() -> None:
    """A newcomer reads it to its end."""
    assert words(ROOT / "README.md") <= MOST_README_WORDS


def test_there_are_few_pages() -> None:
    """Generated pages of the site are not counted: nobody reads them from top to bottom."""
    assert len(DOCS) <= MOST_PAGES
    assert sum(map(words, DOCS)) <= MOST_WORDS


def test_every_page_opens_with_a_title_and_a_sentence() -> None:
    """A title says what the page is for; a sentence right below it whom it is for."""
    for page in DOCS:
        title, blank, first = page.read_text().splitlines()[:3]
        assert title.startswith("# "), page
        assert not blank, page
        assert re.match(r"[A-Z`]", first), page


def test_the_readme_compares_what_the_rack_does() -> None:
    """The table and the chart have the rates of the cable list that they name, in GB/s."""
    rack = ROOT / "examples" / "rack.edges"
    shortest, best = alltoall.route(rack, method="sssp"), alltoall.solve(rack)
    assert len(best.problem.topology.terminals) == 32
    assert len(best.problem.topology.tail) == 2 * 64
    rates = [f"{31 * 12.5 / time:.1f}" for time in (shortest.time, best.time, best.bound)]
    table = re.findall(
        r"^\|[^|]+\| \**([0-9.]+)\** \|", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert table == rates
    chart = (ROOT / "docs" / "img" / "rack.svg").read_text()
    assert all(f">{rate}</text>" in chart for rate in rates)
    assert f"{1 - best.time / shortest.time:.0%}" == "29%"
    assert f"{shortest.time / best.time - 1:.0%}" == "42%"
