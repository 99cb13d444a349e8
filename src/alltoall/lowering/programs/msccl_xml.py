"""The XML dialect of the MSCCL parsers, no wider than they are.

They read character by character: no XML declaration, only blanks and line breaks between elements,
values in double quotes, one blank before each attribute and no line break between them, no
entities, at most 16 attributes of up to 255 characters. Elements they do not know are skipped.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from alltoall.errors import FormatError

MAX_ATTRIBUTES = 16
MAX_STRING = 255
MAX_DEPTH = 8
MAX_ELEMENTS = 2_000_000
"""Most tags of a file; an element takes half a kilobyte of memory."""

_GAP = re.compile(r"[ \n\r]*")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z_][\w.-]*)"
    r'(?P<attributes>(?: [A-Za-z_][\w.-]*="[^"]*")*)'
    r"(?P<end> ?/?)>"
)
_ATTRIBUTE = re.compile(r' ([A-Za-z_][\w.-]*)="([^"]*)"')

_HINTS = {
    "<?": "an XML declaration; the MSCCL parsers know none, remove it",
    "<!": "a document type or CDATA; only comments are allowed, remove it",
    "\t": "a tab; the MSCCL parsers take blanks and line breaks only",
}


@dataclass(slots=True)
class Node:
    """An element: its name, attributes, line in the file, and the elements in it."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list["Node"] = field(default_factory=list)

    def named(self, name: str) -> list["Node"]:
        """Return the children of one name."""
        return [child for child in self.children if child.name == name]


def parse_dialect(text: str, where: str) -> list[Node]:
    """Return the elements at the top of the file, with all below them."""
    top = Node("", {}, 0)
    open_nodes = [top]
    for opens, closes, node in _tags(text, where):
        if opens:
            open_nodes[-1].children.append(node)
            open_nodes.append(node)
        if closes:
            _check_close(open_nodes, node, where)
            open_nodes.pop()
        if len(open_nodes) > MAX_DEPTH:
            raise FormatError(
                f"{where}: line {node.line}: <{node.name}> is nested deeper than {MAX_DEPTH}"
            )
    if len(open_nodes) > 1:
        node = open_nodes[-1]
        raise FormatError(
            f"{where}: <{node.name}> of line {node.line} is never closed; "
            "check that the file is complete"
        )
    return top.children


def attributes_of(name: str, text: str, where: str) -> dict[str, str]:
    """Return the attributes of the first element of a name; none if there is no such element."""
    found = (
        node.attributes for opens, _, node in _tags(text, where) if opens and node.name == name
    )
    return next(found, {})


def _check_close(open_nodes: list[Node], node: Node, where: str) -> None:
    if len(open_nodes) == 1 or open_nodes[-1].name != node.name:
        expected = f"</{open_nodes[-1].name}>" if len(open_nodes) > 1 else "no closing tag"
        raise FormatError(f"{where}: line {node.line}: found </{node.name}>, expected {expected}")


def _tags(text: str, where: str) -> Iterator[tuple[bool, bool, Node]]:
    """Yield every tag: whether it opens an element, whether it closes one, and the element."""
    at, line, counted, elements = 0, 1, 0, 0
    while True:
        at = _end(_GAP, text, at)
        line, counted = line + text.count("\n", counted, at), at
        if at == len(text):
            return
        if text.startswith("<!--", at):
            at = _end_of_comment(text, at, f"{where}: line {line}")
            continue
        match = _TAG.match(text, at)
        if match is None:
            raise FormatError(f"{where}: line {line}: {_hint(text, at)}")
        elements += 1
        if elements > MAX_ELEMENTS:
            raise FormatError(f"{where}: more than {MAX_ELEMENTS:,} tags")
        node = Node(match["name"], _attributes(match, f"{where}: line {line}"), line)
        closing = bool(match["close"])
        yield not closing, closing or match["end"].endswith("/"), node
        at = match.end()


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _end_of_comment(text: str, at: int, where: str) -> int:
    end = text.find("-->", at + len("<!--"))
    if end < 0:
        raise FormatError(f"{where}: a comment that never ends; check that the file is complete")
    return end + len("-->")


def _attributes(match: re.Match[str], where: str) -> dict[str, str]:
    pairs = _ATTRIBUTE.findall(match["attributes"])
    # The parsers count a blank before the end of the tag as one more attribute.
    if len(pairs) + match["end"].startswith(" ") > MAX_ATTRIBUTES:
        raise FormatError(f"{where}: <{match['name']}> has more than {MAX_ATTRIBUTES} attributes")
    # The same few words and numbers fill a file: each is kept in memory once.
    attributes = {sys.intern(key): sys.intern(value) for key, value in pairs}
    if len(attributes) < len(pairs):
        raise FormatError(f"{where}: <{match['name']}> has an attribute twice")
    for key, value in pairs:
        if max(len(key), len(value)) > MAX_STRING:
            raise FormatError(f"{where}: {key[:60]} is longer than {MAX_STRING} characters")
    return attributes


def _hint(text: str, at: int) -> str:
    for start, words in _HINTS.items():
        if text.startswith(start, at):
            return words
    shown = text[at : at + 60].splitlines()[0]
    return (
        f"cannot read {shown!r}; expected an element on one line, one blank before each attribute "
        'and values in double quotes, such as <gpu id="0">; the file may be truncated'
    )
