"""Reading untrusted XML."""

from collections.abc import Sequence, Set
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from alltoall.errors import FormatError

MAX_XML_DEPTH = 100
MAX_XML_ELEMENTS = 2_000_000


def parse_xml(text: str, where: str) -> Element:
    """Return the root element; refuse DTDs, entities, and XML that is too deep, large or broken."""
    parser = DefusedXMLParser(target=_BoundedBuilder(where), forbid_dtd=True)
    try:
        parser.feed(text)
        root = parser.close()
    except ParseError as error:
        line, column = error.position
        raise FormatError(
            f"{where}: line {line}, column {column}: not well-formed XML ({error.msg}); "
            "check that the file is complete"
        ) from None
    except DefusedXmlException as error:
        raise FormatError(
            f"{where}: {type(error).__name__}: the XML declares a document type or entities, "
            "which are not read from files; remove the declaration"
        ) from None
    if not isinstance(root, Element):
        raise FormatError(f"{where}: holds no XML element; check that the file is complete")
    return root


class _BoundedBuilder(TreeBuilder):
    """A tree builder with a limit of depth and a limit of elements."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where, self._depth, self._elements = where, 0, 0

    def start(self, tag: str, attrs: dict[str, str], /) -> Element:
        """Open an element."""
        self._depth += 1
        self._elements += 1
        if self._depth > MAX_XML_DEPTH:
            raise FormatError(
                f"{self._where}: <{tag}> is nested deeper than {MAX_XML_DEPTH} elements"
            )
        if self._elements > MAX_XML_ELEMENTS:
            raise FormatError(f"{self._where}: more than {MAX_XML_ELEMENTS:,} XML elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> Element:
        """Close an element."""
        self._depth -= 1
        return super().end(tag)


def local_name(element: Element) -> str:
    """Return an element's tag without its namespace."""
    return element.tag.rpartition("}")[2]


def require_element(
    element: Element,
    tag: str,
    here: str,
    attributes: Sequence[str],
    optional: Set[str] = frozenset(),
    leaf: bool = False,
) -> None:
    """Refuse an element of another name, with other attributes, or with text inside.

    It must have all of `attributes`, and may have `optional` ones; a leaf has no elements inside.
    """
    if element.tag != tag:
        raise FormatError(f"{here}: found <{element.tag[:60]}>; expected <{tag}>")
    wrong = (element.attrib.keys() - optional) ^ set(attributes)
    if wrong:
        raise FormatError(
            f"{here}: <{tag}> has other attributes, or lacks some ({min(wrong)[:60]}); "
            f"expected {', '.join(attributes) or 'none'}"
        )
    around = (element.text, *(child.tail for child in element))
    if any(text and not text.isspace() for text in around) or (leaf and len(element)):
        raise FormatError(f"{here}: <{tag}> has unexpected text or elements; expected none")
