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
"""Most tags of a file; an element takes half a kilobyte."""

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
    """Return the top elements of the file, with their descendants."""
    top = Node("", {}, 0)
    open_nodes = [top]
    for opens, closes, node in _tags(text, where):
        if opens:
            open_nodes[-1].children.append(node)
            open_nodes.append(node)
        if closes:
            parent = open_nodes.pop()
            if parent.name != node.name or not open_nodes:
                expected = f"</{parent.name}>" if open_nodes else "no closing tag"
                problem = f"found </{node.name}>, expected {expected}"
                raise FormatError(f"{where}: line {node.line}: {problem}")
        if len(open_nodes) > MAX_DEPTH:
            problem = f"<{node.name}> is nested deeper than {MAX_DEPTH}"
            raise FormatError(f"{where}: line {node.line}: {problem}")
    if len(open_nodes) > 1:
        node = open_nodes[-1]
        problem = f"<{node.name}> of line {node.line} is never closed"
        raise FormatError(f"{where}: {problem}; check that the file is complete")
    return top.children


def attributes_of(name: str, text: str, where: str) -> dict[str, str]:
    """Return the attributes of the first element of a name, empty if there is none."""
    opened = (node for opens, _, node in _tags(text, where) if opens)
    return next((node.attributes for node in opened if node.name == name), {})


def _tags(text: str, where: str) -> Iterator[tuple[bool, bool, Node]]:
    """Yield every tag: whether it opens an element, whether it closes one, and the element."""
    at, line, counted, elements = 0, 1, 0, 0
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        line, counted = line + text.count("\n", counted, at), at
        if at == len(text):
            return
        if text.startswith("<!--", at):
            at = text.find("-->", at + len("<!--")) + len("-->")
            if at < len("-->"):
                problem = "a comment that never ends; check that the file is complete"
                raise FormatError(f"{where}: line {line}: {problem}")
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


def _attributes(match: re.Match[str], where: str) -> dict[str, str]:
    pairs = _ATTRIBUTE.findall(match["attributes"])
    # The parsers count a blank before the end of the tag as one more attribute.
    if len(pairs) + match["end"].startswith(" ") > MAX_ATTRIBUTES:
        raise FormatError(f"{where}: <{match['name']}> has more than {MAX_ATTRIBUTES} attributes")
    # The same few words and numbers fill a file: each is kept in memory once.
    attributes = {sys.intern(key): sys.intern(value) for key, value in pairs}
    if len(attributes) < len(pairs):
        raise FormatError(f"{where}: <{match['name']}> has an attribute twice")
    for key in (key for key, value in pairs if max(len(key), len(value)) > MAX_STRING):
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
