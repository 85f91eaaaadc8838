"""Validation against user-supplied schema files, `<message>.xsd` in a directory, in addition to our tables."""

from pathlib import Path

from qwed.packs.result import UnreadableInputError
from qwed_finance._iso.node import Element, MessageIssues
from qwed_finance._iso.schema import MessageDefinition


def validate_with_xsd(directory: Path, message: MessageDefinition, document: Element, issues: MessageIssues) -> None:
    """Rebuild the tree with lxml and validate it against the schema file of its message."""
    try:
        from lxml import etree
    except ImportError:
        raise ImportError("schema files need lxml: install `qwed[finance]`") from None
    path = directory / f"{message.name}.xsd"
    if not path.is_file():
        raise UnreadableInputError(f"schema file `{path.name}` not found")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        schema = etree.XMLSchema(etree.parse(str(path), parser))
    except (etree.XMLSyntaxError, etree.XMLSchemaParseError) as error:
        raise UnreadableInputError(f"`{path.name}` is not a valid schema: {str(error)[:200]}") from None
    top = etree.Element(f"{{{message.namespace}}}{document.name}")
    pending = [(document, top)]
    while pending:
        node, element = pending.pop()
        element.text = node.text or None
        for name, value in node.attributes.items():
            element.set(name, value)
        pending.extend(
            (child, etree.SubElement(element, f"{{{message.namespace}}}{child.name}")) for child in node.children
        )
    try:
        schema.assertValid(top)
    except etree.DocumentInvalid as error:
        issues.fail(document, "schema", str(error)[:300])
