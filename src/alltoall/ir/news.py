"""What long work says while it goes on: a message, and how far it is.

News are texts, so that whoever takes messages takes them; from what they know a terminal has a bar.
"""

from math import log
from typing import Self


class News(str):
    """A message, with the share of the work that is done and the certified gap, if known."""

    __slots__ = ("gap", "share")
    gap: float | None
    share: float | None

    @classmethod
    def of_count(cls, text: str, done: int, total: int) -> Self:
        """Return news of work of which so many parts are done."""
        news = cls(text)
        news.gap, news.share = None, done / total if total else 1.0
        return news

    @classmethod
    def of_gap(cls, text: str, gap: float, aim: float) -> Self:
        """Return news of a search that has proven a gap, on the way to the one it aims for.

        Each digit takes about as long as the one before, so the share is that of the digits.
        """
        news = cls(text)
        news.gap = gap
        news.share = 1.0 if gap <= aim else max(0.0, min(1.0, log(gap) / log(aim)))
        return news
