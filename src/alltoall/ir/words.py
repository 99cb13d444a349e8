"""Text for people: names on one line, short numbers and lists, progress messages."""

import difflib
import re
from collections.abc import Iterable
from math import log
from typing import Self

SHOWN = 8
"""Most items listed by name."""

LAST_DIGITS = 1e-14
"""Rounding error of a quotient of two equal sums."""


PROVEN = 1e-9
"""Largest certified gap of an optimum; smaller gaps are rounding noise."""


def status_in_words(status: str) -> str:
    """Return a status in words; `Status` explains each."""
    return "within the gap asked for" if status == "within_gap" else status.replace("_", " ")


def one_line(name: str) -> str:
    """Return a name as printable text on one line, for comments and attributes."""
    words = " ".join(name.split())
    return "".join(letter for letter in words if letter.isprintable())


def number(value: float) -> str:
    """Return a number with four digits, as short as it can be."""
    return f"{value:.4g}"


def span(values: Iterable[float]) -> str:
    """Return the range of numbers, or their common value."""
    found = list(values)
    least, most = min(found), max(found)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 cable, 2 cables."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def beyond_rounding(share: float) -> float:
    """Snap rounding noise to 0."""
    return share if share > LAST_DIGITS else 0.0


def percent(share: float) -> str:
    """Return a share in percent with two digits: 37 %, 3.5 %, 0.12 %."""
    value = 100.0 * beyond_rounding(share)
    if value >= 9.95:
        return f"{value:,.0f} %"
    return f"{value:.2g} %" if value == 0 or value >= 0.001 else "less than 0.001 %"


def rate_of(throughput: float) -> str:
    """Return GB/s with three digits, or whole ones: 17.7 GB/s, 1,234 GB/s."""
    return f"{throughput:,.0f} GB/s" if throughput >= 999.5 else f"{throughput:.3g} GB/s"


def seconds_in_words(seconds: float) -> str:
    """Return a time with four digits in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def listed(items: Iterable[object]) -> str:
    """Return items with commas between them, the first few of many."""
    found = list(items)
    more = f", and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return ", ".join(map(str, found[:SHOWN])) + more


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is closest to a wrong one, if any is close."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}? " if close else ""


class ProgressMessage(str):
    """A message, with the share of the work that is done and the certified gap, if known."""

    __slots__ = ("gap", "share")
    gap: float | None
    share: float | None

    @classmethod
    def of_count(cls, text: str, done: int, total: int) -> Self:
        """Return a message with the share of finished parts."""
        news = cls(text)
        news.gap, news.share = None, done / total if total else 1.0
        return news

    @classmethod
    def of_gap(cls, text: str, gap: float, aim: float) -> Self:
        """Return a message of a search on its way to a gap.

        Each digit takes about equally long, so the share is that of the digits.
        """
        news = cls(text)
        news.gap = gap
        news.share = 1.0 if gap <= aim else max(0.0, min(1.0, log(gap) / log(aim)))
        return news


def kind_in_words(found: object) -> str:
    """Return the kind of a value for messages: routes, a flow, an execution plan."""
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(found).__name__).lower()
    if kind.endswith("s"):
        return kind
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
