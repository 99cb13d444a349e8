"""Names of nodes, the nodes and links that a text means, and names of files."""

import difflib
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from alltoall.errors import TopologyError, UsageError

MAX_NAME = 200
"""Most characters of a node's name."""

MAX_LISTED = 10
"""Most names that a message lists."""

MAX_COMPARED = 5_000
"""Most names that a message compares to find close ones."""

MAX_STEM = 120
"""Most characters of a generated file name, without its suffix."""

ARROW, DASH = "->", "--"
"""Marks between the ends of a link, and of a cable, which goes both ways."""

SEPARATORS = (",", "-")
"""Other marks between the ends of a link; names may contain them too."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_NUMBER = re.compile(r"[0-9]{1,18}")

Find = Callable[[str], int | None]
"""Returns the node that a text means, or None."""


def checked_names(owner: str, nodes: int, names: Iterable[str]) -> tuple[str, ...]:
    """Return names that are one per node, distinct and printable; raise for others."""
    found = tuple(names)
    if len(found) != nodes:
        raise TopologyError(f"{owner}: {len(found)} names for {nodes} nodes; expected one each")
    for node, name in enumerate(found):
        if not is_name(name):
            raise TopologyError(
                f"{owner}: the name of node {node} is {reprlib.repr(name)}; expected 1 to "
                f"{MAX_NAME} printable characters, with no blank at either end"
            )
    twice = next((name for name, times in Counter(found).items() if times > 1), None)
    if twice is not None:
        raise TopologyError(f"{owner}: two nodes are called {twice!r}; expected distinct names")
    return found


def is_name(name: object) -> bool:
    """Whether something can be the name of a node."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME
        and name.isprintable()
        and name == name.strip()
    )


def sound_names(names: Iterable[object]) -> tuple[str, ...] | None:
    """Return the labels of foreign nodes as names, or None if they cannot all be names."""
    found = tuple(map(str, names))
    return found if all(map(is_name, found)) and len(set(found)) == len(found) else None


def distinct_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return short, distinct names: repeated ones get a mark."""
    found: dict[str, None] = {}
    for name in names:
        own, mark = name[-MAX_NAME:].strip(), 2
        while own in found:
            own, mark = f"{name[-MAX_NAME // 2 :].strip()}~{mark}", mark + 1
        found[own] = None
    return tuple(found)


def file_stem(text: str) -> str:
    """Return a file name for a text, without suffix; different texts have different stems.

    Letters and digits of ASCII, dots, hyphens and underscores stay. Any other character becomes
    its bytes as %XX, and a long stem ends in a digest of the whole.
    """
    stem = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)
    if len(stem) <= MAX_STEM:
        return stem
    import hashlib  # noqa: PLC0415 (slow to import, and for long names only)

    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{stem[: MAX_STEM - 17]}~{digest}"


class FileStems:
    """Distinct stems, also on file systems that ignore case."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def stem_of(self, text: str) -> str:
        """Return a new stem for a text; a repeated one gets a mark."""
        stem = file_stem(text)
        self._seen[stem.lower()] += 1
        times = self._seen[stem.lower()]
        return stem if times == 1 else f"{stem}~{times}"


def node_called(text: str, numbers: Mapping[str, int], nodes: int) -> int | None:
    """Return the node named by a text; names take precedence over numbers."""
    text = text.strip()
    if text in numbers:
        return numbers[text]
    if _NUMBER.fullmatch(text) and int(text) < nodes:
        return int(text)
    return None


def no_node(owner: str, text: str, names: Collection[str], nodes: int) -> UsageError:
    """Return the error for an unknown node, with similar names."""
    expected = f"expected one of 0..{nodes - 1}"
    if names:
        close = close_names(text, names) or list(names)[:MAX_LISTED]
        more = ", ..." if len(close) < len(names) else ""
        expected = f"expected a name, such as {', '.join(map(repr, close))}{more}"
    return UsageError(f"{owner}: there is no node {reprlib.repr(text)}; {expected}")


def two_ends(text: str, find: Find) -> list[tuple[str, str]]:
    """Return every split of a text into two known ends of a link.

    A text with an arrow is split there, others at every comma and hyphen, since names may have
    them.
    """
    cuts = _cuts(text)
    return [(u, v) for u, v in cuts if find(u) is not None and find(v) is not None]


def _cuts(text: str) -> list[tuple[str, str]]:
    mark = next((each for each in (ARROW, f" {DASH} ") if each in text), None)
    if mark is not None:
        pairs = [text.partition(mark)[::2]]
    else:
        places = [at for at, letter in enumerate(text) if letter in SEPARATORS]
        pairs = [(text[:at], text[at + 1 :]) for at in places]
    return [(u.strip(), v.strip()) for u, v in pairs]


def not_a_link(
    owner: str, text: str, ways: list[tuple[str, str]], find: Find, names: Collection[str]
) -> UsageError:
    """Return the error for a text that is no link, or more than one."""
    about = f"link {reprlib.repr(text)}"
    if len(ways) > 1:
        meant = " or ".join(f"{u}{ARROW}{v}" for u, v in ways[:MAX_LISTED])
        return UsageError(f"{about} may be {meant}; write one of these")
    both = [order for u, v in _cuts(text) for order in ((u, v), (v, u))]
    missing = next((other for one, other in both if find(one) is not None), None)
    if missing is not None:
        close = " or ".join(map(repr, close_names(missing, names)))
        about += f": {owner} has no node {reprlib.repr(missing)}"
        about += f", did you mean {close}?" if close else ""
    return UsageError(
        f"{about}; expected two nodes, such as 3-4, or a{ARROW}b where names have hyphens"
    )


def close_names(text: str, names: Collection[str]) -> list[str]:
    """Return up to three names that are similar to a text."""
    return difflib.get_close_matches(text[:MAX_NAME], list(names)[:MAX_COMPARED], n=3)


def short_names(paths: Sequence[str]) -> list[str]:
    """Return file names without folders, unless two would be equal."""
    short = [Path(path).name or path for path in paths]
    pairs = zip(paths, short, strict=True)
    return [brief if short.count(brief) == 1 else path for path, brief in pairs]
