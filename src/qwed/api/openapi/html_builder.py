"""HTML builder: strings are escaped unless they are marked as markup."""

import re
from collections.abc import Iterable
from html import escape

_CODE = re.compile(r"`([^`]+)`")


class Html(str):
    """Markup. Any other string is text and is escaped when it is added to an element."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str) -> Html:
    """Return an element; in attribute names `_` stands for `-`, and a trailing one avoids Python keywords."""
    written = "".join(f' {_attribute(key)}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def join(children: Iterable[str]) -> Html:
    """Return the concatenated children, with text escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def void_element(name: str, /, **attributes: str) -> Html:
    """Return an element without an end tag."""
    return Html(element(name, **attributes).removesuffix(f"</{name}>"))


def prose(text: str) -> Html:
    """Return a sentence whose backticks are code."""
    parts = _CODE.split(text)
    return join(element("code", part) if position % 2 else part for position, part in enumerate(parts))


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Html:
    """Return a table that scrolls in a narrow window."""
    head = element("tr", *(element("th", name, scope="col") for name in heads))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    inner = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def details(summary: str, *children: str, **attributes: str) -> Html:
    """Return a collapsed section."""
    return element("details", element("summary", summary), *children, **attributes)
