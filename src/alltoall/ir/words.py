"""Nouns in words: names on one line, numbers of few digits, lists that do not go on for ever."""

from collections.abc import Iterable

SHOWN = 8
"""How many of a list are named before the rest is counted."""

LAST_DIGITS = 1e-14
"""A quotient of two equal sums may differ from 1 by this much, either way."""


PROVEN = 1e-9
"""A certified gap up to this is that of an optimum: no smaller one can be told from rounding."""


def status_in_words(status: str) -> str:
    """Return how a search ended as people read it; `Status` says what each means."""
    return "within the gap asked for" if status == "within_gap" else status.replace("_", " ")


def escaped(text: str, kept: str = "") -> str:
    """Return a text with escapes for all that is not printable, line ends too, but what is kept."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in text
    )


def one_line(name: str) -> str:
    """Return a name as printable text on one line, for comments and attributes."""
    words = " ".join(name.split())
    return "".join(letter for letter in words if letter.isprintable())


def number(value: float) -> str:
    """Return a number with four digits, as short as it can be."""
    return f"{value:.4g}"


def span(values: Iterable[float]) -> str:
    """Return the smallest and the largest of some numbers, or the one that all of them are."""
    found = list(values)
    least, most = min(found), max(found)
    return f"{least:g}" if least == most else f"{least:g} to {most:g}"


def counted(number: int, noun: str) -> str:
    """Return so many of something in words: 1 cable, 2 cables."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def beyond_rounding(share: float) -> float:
    """Return a gap or a loss, or 0 where it is what rounding makes of nothing."""
    return share if share > LAST_DIGITS else 0.0


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
