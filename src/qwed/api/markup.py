"""HTML out of Python: what is not marked as markup is text, and is escaped."""

import re
from collections.abc import Iterable
from html import escape

_CODE = re.compile(r"`([^`]+)`")


class Html(str):
    """Markup. Any other string is text, and is escaped on its way into an element."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str) -> Html:
    """An element; an attribute is written with `_` for `-`, and with one at its end where Python has the word."""
    written = "".join(f' {_attribute(key)}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def joined(children: Iterable[str]) -> Html:
    """The children one after the other, text escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


def void(name: str, /, **attributes: str) -> Html:
    """An element that has no end."""
    return Html(element(name, **attributes).removesuffix(f"</{name}>"))


def prose(text: str) -> Html:
    """A sentence whose backticks are code."""
    parts = _CODE.split(text)
    return joined(element("code", part) if place % 2 else part for place, part in enumerate(parts))


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Html:
    """A table that a narrow window scrolls."""
    head = element("tr", *(element("th", name, scope="col") for name in heads))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    inner = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def details(summary: str, *children: str, **attributes: str) -> Html:
    """What opens when it is asked for."""
    return element("details", element("summary", summary), *children, **attributes)
