"""Parser of the XML subset of ISO 20022: elements, attributes and text. All other XML features are rejected.

It uses expat directly, without a tree builder: a document type is rejected where it begins, before an entity can be
defined, and a comment or CDATA section within a value is detected, which a tree builder would join or drop.
"""

import re
from typing import NoReturn
from xml.parsers import expat

from qwed_finance._iso.node import Element

MAX_BYTES = 5_000_000
MAX_ELEMENTS = 150_000
MAX_DEPTH = 40
_WRONG_ENCODINGS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"\x00", "UTF-32 or UTF-16"))
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
LOCATIONS = frozenset(("schemaLocation", "noNamespaceSchemaLocation"))
_MAX_NAME = 100
_BLANK = re.compile(r"[ \t\r\n]*+")


class XmlRejectedError(Exception):
    """The document is not valid XML, or uses XML features that a payment message may not contain."""


class MessageTooLargeError(Exception):
    """The document exceeds the limits on bytes or elements."""


class XmlDocument:
    """Parsed document: its root and the namespace of its elements."""

    def __init__(self, root: Element, namespace: str) -> None:
        self.root = root
        self.namespace = namespace


def parse_xml(content: str | bytes) -> XmlDocument:
    """Parse the document. Raise XmlRejectedError if it contains a forbidden feature."""
    data = _to_utf8(content)
    if len(data) > MAX_BYTES:
        raise MessageTooLargeError(f"a message of more than {MAX_BYTES:,} bytes is not accepted, send it in parts")
    reader = _XmlReader()
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        text = expat.errors.messages.get(error.code, "not well-formed")
        raise XmlRejectedError(f"is not valid XML: {text} at line {error.lineno}, column {error.offset}") from None
    if reader.root is None:
        raise XmlRejectedError("has no element in it")
    return XmlDocument(reader.root, reader.namespace)


def _to_utf8(content: str | bytes) -> bytes:
    if isinstance(content, str):
        try:
            content = content.encode()
        except UnicodeEncodeError:
            raise XmlRejectedError("contains half of a surrogate pair, which is not a character") from None
    content = content.removeprefix(b"\xef\xbb\xbf")
    for mark, name in _WRONG_ENCODINGS:
        if content[:4].find(mark) >= 0:
            raise XmlRejectedError(f"is written in {name}, ISO 20022-4 requires UTF-8")
    return content


class _XmlReader:
    """Handlers of the parser and the tree that they build."""

    def __init__(self) -> None:
        # The encoding is fixed; the encoding declared by the document is compared with it, never used.
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
        self.root: Element | None = None
        self.namespace = ""
        self._open: list[Element] = []
        self._commented: set[Element] = set()
        self._elements = 0
        self._foreign = 0

    def _declared(self, version: str, encoding: str | None, _standalone: int) -> None:
        if version != "1.0":
            raise XmlRejectedError(f"is XML {version[:10]}, write XML 1.0")
        if encoding is not None and encoding.upper() != "UTF-8":
            raise XmlRejectedError(f"declares the encoding `{encoding[:40]}`, ISO 20022-4 requires UTF-8")

    def _doctype(self, *_of: object) -> NoReturn:
        raise XmlRejectedError("has a document type or an entity in it, ISO 20022-4 allows neither")

    def _instruction(self, target: str, _data: str) -> NoReturn:
        raise XmlRejectedError(f"has the processing instruction `{target[:40]}` in it, a message has none")

    def _section(self) -> NoReturn:
        raise XmlRejectedError("has a CDATA section in it, write the text with `&amp;` and `&lt;`")

    def _comment(self, _text: str) -> None:
        # Between elements a comment is harmless; within a value parsers disagree about the text.
        current = self._open[-1] if self._open else None
        if current is None or current.children:
            return
        if not _BLANK.fullmatch(current.text):
            raise XmlRejectedError(f"has a comment within the value of `{current.name}`")
        # Drop the checked blanks: otherwise each further comment would scan them again (quadratic time).
        current.text = ""
        self._commented.add(current)

    def _start(self, name: str, attributes: list[str]) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise MessageTooLargeError(
                f"a message of more than {MAX_ELEMENTS:,} elements is not accepted, send it in parts"
            )
        if len(self._open) >= MAX_DEPTH:
            raise XmlRejectedError(f"is nested more than {MAX_DEPTH} levels deep")
        namespace, _, local = name.rpartition(" ")
        parent = self._open[-1] if self._open else None
        node = Element(local[:_MAX_NAME], parent)
        self._place(node, parent, namespace)
        if attributes:
            self._attributes(node, attributes)
        self._open.append(node)

    def _place(self, node: Element, parent: Element | None, namespace: str) -> None:
        if parent is None:
            self.root, self.namespace = node, namespace
            return
        self._commented.discard(parent)
        if not _BLANK.fullmatch(parent.text):
            raise XmlRejectedError(f"has text between the elements in `{parent.name}`")
        parent.text = ""
        parent.children.append(node)
        if namespace == self.namespace or self._foreign:
            return
        if parent.name != "Envlp":
            described = f"in the namespace `{namespace[:80]}`" if namespace else "in no namespace"
            raise XmlRejectedError(f"has `{node.name}` {described} among elements of `{self.namespace[:80]}`")
        # Supplementary data has arbitrary content and may be in another namespace.
        self._foreign = len(self._open)

    def _attributes(self, node: Element, attributes: list[str]) -> None:
        kept_attributes: dict[str, str] = {}
        for name, value in zip(attributes[::2], attributes[1::2], strict=True):
            namespace, _, local = name.rpartition(" ")
            # Schema locations are hints and ignored; `xsi:nil` and `xsi:type` would change the message.
            if namespace == _INSTANCE and node.parent is None and local in LOCATIONS:
                continue
            kept_attributes[name[:_MAX_NAME] if namespace else local[:_MAX_NAME]] = value
        node.attributes = kept_attributes

    def _end(self, _name: str) -> None:
        node = self._open.pop()
        if len(self._open) == self._foreign:
            self._foreign = 0
        if node in self._commented and not _BLANK.fullmatch(node.text):
            raise XmlRejectedError(f"has a comment within the value of `{node.name}`")

    def _text(self, text: str) -> None:
        current = self._open[-1]
        if not current.children:
            current.text += text
        elif not _BLANK.fullmatch(text):
            raise XmlRejectedError(f"has text between the elements in `{current.name}`")
