"""The schema files of a user, in addition to our tables: `<message>.xsd` in a directory."""

from pathlib import Path

from qwed.packs.result import Unreadable
from qwed_finance._iso.node import Findings, Node
from qwed_finance._iso.schema import Message


def examine_with(directory: Path, message: Message, document: Node, found: Findings) -> None:
    """Hold the tree, which is built anew, to the schema file of its message."""
    try:
        from lxml import etree
    except ImportError:
        raise ImportError("schema files need lxml: install `qwed[finance]`") from None
    path = directory / f"{message.name}.xsd"
    if not path.is_file():
        raise Unreadable(f"there is no `{path.name}` among the schema files")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        schema = etree.XMLSchema(etree.parse(str(path), parser))
    except (etree.XMLSyntaxError, etree.XMLSchemaParseError) as wrong:
        raise Unreadable(f"`{path.name}` is no schema: {str(wrong)[:200]}") from None
    top = etree.Element(f"{{{message.namespace}}}{document.name}")
    waiting = [(document, top)]
    while waiting:
        node, element = waiting.pop()
        element.text = node.text or None
        for name, value in node.attributes.items():
            element.set(name, value)
        waiting.extend(
            (child, etree.SubElement(element, f"{{{message.namespace}}}{child.name}")) for child in node.children
        )
    try:
        schema.assertValid(top)
    except etree.DocumentInvalid as wrong:
        found.fail(document, "schema", str(wrong)[:300])
