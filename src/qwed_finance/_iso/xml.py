"""XML as ISO 20022 uses it: elements, attributes and text. Everything else that XML can do is refused.

The parser is expat, below every tree builder: a document type is refused where it begins, before an entity could be
defined, and a comment or a section within a value is seen, which a tree would have joined or dropped.
"""

import re
from typing import NoReturn
from xml.parsers import expat

from qwed_finance._iso.node import Node

MOST_BYTES = 5_000_000
MOST_ELEMENTS = 150_000
DEEPEST = 40
_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"\x00", "UTF-32 or UTF-16"))
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
LOCATIONS = frozenset(("schemaLocation", "noNamespaceSchemaLocation"))
_LONGEST_NAME = 100
_BLANK = re.compile(r"[ \t\r\n]*+")


class Refused(Exception):
    """The document is no XML that a payment message may be written in."""


class TooLarge(Exception):
    """The document has more to it than is looked at."""


class Document:
    """A message as it was read: its root, the namespace that all of it is in."""

    def __init__(self, root: Node, namespace: str) -> None:
        self.root = root
        self.namespace = namespace


def read_xml(given: str | bytes) -> Document:
    """The tree of a document; Refused says what it has in it that it must not have."""
    data = _bytes(given)
    if len(data) > MOST_BYTES:
        raise TooLarge(f"a message of more than {MOST_BYTES:,} bytes is not looked at, send it in parts")
    reader = _Reader()
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as wrong:
        text = expat.errors.messages.get(wrong.code, "not well-formed")
        raise Refused(f"is no XML: {text} at line {wrong.lineno}, column {wrong.offset}") from None
    if reader.root is None:
        raise Refused("has no element in it")
    return Document(reader.root, reader.namespace)


def _bytes(given: str | bytes) -> bytes:
    if isinstance(given, str):
        try:
            given = given.encode()
        except UnicodeEncodeError:
            raise Refused("holds half of a surrogate pair, which no character is") from None
    given = given.removeprefix(b"\xef\xbb\xbf")
    for mark, name in _MARKS:
        if given[:4].find(mark) >= 0:
            raise Refused(f"is written in {name}, ISO 20022-4 wants UTF-8")
    return given


class _Reader:
    """The handlers of the parser and what they have built."""

    def __init__(self) -> None:
        # The encoding is given: what the document says of it is compared, never followed.
        self.parser = parser = expat.ParserCreate("UTF-8", " ")
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.XmlDeclHandler = self._declared
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._doctype
        parser.ExternalEntityRefHandler = self._doctype
        parser.SkippedEntityHandler = self._doctype
        parser.ProcessingInstructionHandler = self._instruction
        parser.CommentHandler = self._comment
        parser.StartCdataSectionHandler = self._section
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        self.root: Node | None = None
        self.namespace = ""
        self._open: list[Node] = []
        self._commented: set[Node] = set()
        self._elements = 0
        self._foreign = 0

    def _declared(self, version: str, encoding: str | None, _standalone: int) -> None:
        if version != "1.0":
            raise Refused(f"is XML {version[:10]}, write XML 1.0")
        if encoding is not None and encoding.upper() != "UTF-8":
            raise Refused(f"declares the encoding `{encoding[:40]}`, ISO 20022-4 wants UTF-8")

    def _doctype(self, *_of: object) -> NoReturn:
        raise Refused("has a document type or an entity in it, ISO 20022-4 allows neither")

    def _instruction(self, target: str, _data: str) -> NoReturn:
        raise Refused(f"has the processing instruction `{target[:40]}` in it, a message has none")

    def _section(self) -> NoReturn:
        raise Refused("has a CDATA section in it, write the text with `&amp;` and `&lt;`")

    def _comment(self, _text: str) -> None:
        # Between elements a comment changes nothing; within a value one parser reads on and another stops.
        here = self._open[-1] if self._open else None
        if here is None or here.children:
            return
        if not _BLANK.fullmatch(here.text):
            raise Refused(f"has a comment within the value of `{here.name}`")
        # Blanks were looked at and mean nothing: kept, each comment would look at all before it once more.
        here.text = ""
        self._commented.add(here)

    def _start(self, name: str, attributes: list[str]) -> None:
        self._elements += 1
        if self._elements > MOST_ELEMENTS:
            raise TooLarge(f"a message of more than {MOST_ELEMENTS:,} elements is not looked at, send it in parts")
        if len(self._open) >= DEEPEST:
            raise Refused(f"has elements more than {DEEPEST} deep in one another")
        namespace, _, local = name.rpartition(" ")
        parent = self._open[-1] if self._open else None
        node = Node(local[:_LONGEST_NAME], parent)
        self._place(node, parent, namespace)
        if attributes:
            self._attributes(node, attributes)
        self._open.append(node)

    def _place(self, node: Node, parent: Node | None, namespace: str) -> None:
        if parent is None:
            self.root, self.namespace = node, namespace
            return
        self._commented.discard(parent)
        if not _BLANK.fullmatch(parent.text):
            raise Refused(f"has text beside the elements in `{parent.name}`")
        parent.text = ""
        parent.children.append(node)
        if namespace == self.namespace or self._foreign:
            return
        if parent.name != "Envlp":
            shown = f"in the namespace `{namespace[:80]}`" if namespace else "in no namespace"
            raise Refused(f"has `{node.name}` {shown} among elements of `{self.namespace[:80]}`")
        # What supplementary data holds is agreed on elsewhere, and may be in a namespace of its own.
        self._foreign = len(self._open)

    def _attributes(self, node: Node, attributes: list[str]) -> None:
        given: dict[str, str] = {}
        for name, value in zip(attributes[::2], attributes[1::2], strict=True):
            namespace, _, local = name.rpartition(" ")
            # Where schemas lie is for whoever looks for them; `nil` and `type` would make it another message.
            if namespace == _INSTANCE and node.parent is None and local in LOCATIONS:
                continue
            given[name[:_LONGEST_NAME] if namespace else local[:_LONGEST_NAME]] = value
        node.attributes = given

    def _end(self, _name: str) -> None:
        node = self._open.pop()
        if len(self._open) == self._foreign:
            self._foreign = 0
        if node in self._commented and not _BLANK.fullmatch(node.text):
            raise Refused(f"has a comment within the value of `{node.name}`")

    def _text(self, text: str) -> None:
        here = self._open[-1]
        if not here.children:
            here.text += text
        elif not _BLANK.fullmatch(text):
            raise Refused(f"has text beside the elements in `{here.name}`")
