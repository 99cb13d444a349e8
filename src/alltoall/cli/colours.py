"""Colours, where a terminal is: nothing else gets a byte of them.

They are the sixteen that every terminal has, so that its own theme decides what they look like.
"""

import os
from typing import TextIO

RESET = "\x1b[0m"
LABEL, ASIDE, WRONG = "\x1b[36m", "\x1b[2m", "\x1b[1;31m"
"""Of labels, of remarks, and of what went wrong."""


def coloured(stream: TextIO | None) -> bool:
    """Whether a stream shows colours: a terminal that is not dumb, unless NO_COLOR asks for none.

    https://no-color.org says that it is heard when it is there and not empty.
    """
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def paint(text: str, colour: str, stream: TextIO | None) -> str:
    """Return a text in a colour if the stream shows it."""
    return f"{colour}{text}{RESET}" if text and coloured(stream) else text
