"""The /docs page: complete, self-contained, and no text of the document becomes markup."""

import asyncio
import base64
import hashlib
import re
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest

from qwed.api.handlers import docs
from qwed.api.openapi import docs_page
from qwed.api.openapi.document import document
from qwed.api.server.endpoint import RequestContext
from qwed.model import ErrorCode

Json = dict[str, Any]

_VOID = frozenset({"meta", "link", "input"})
_LABELLED = frozenset({"input", "textarea"})


class Read(HTMLParser):
    """A page as its elements, their attributes and its text; unbalanced tags are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, self.getpos()

    def handle_data(self, data: str) -> None:
        self.words += data

    def attributes(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


DOCUMENT = document()
TEXT = docs_page.render(DOCUMENT)
PAGE = Read(TEXT)
OPERATIONS = [
    (method.upper(), path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def every_operation() -> Any:
    return pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS, ids=lambda item: str(item)[:40])


@every_operation()
def test_an_operation_is_on_the_page_with_what_it_takes_and_answers(method: str, path: str, operation: Json) -> None:
    name = operation["operationId"]
    article = TEXT[TEXT.index(f'<article id="{name}"') :]
    page = Read(article[: article.index("</article>") + len("</article>")])
    for expected in (method, path, operation["summary"], *operation["responses"]):
        assert expected in page.words
    for parameter in operation["parameters"]:
        assert {"name": parameter["name"], "data-in": parameter["in"]}.items() <= next(
            field.items() for field in page.attributes("input") if field["name"] == parameter["name"]
        )
    form = page.attributes("form")[0]
    assert (form["data-method"], form["data-path"]) == (method, path)
    assert form["data-credential"] == ("none", "key", "token")[len(operation["security"])]
    assert len(page.attributes("textarea")) == ("requestBody" in operation)
    assert f"#{name}" in [link["href"] for link in PAGE.attributes("a")]


@every_operation()
def test_every_example_of_an_operation_is_printed(method: str, path: str, operation: Json) -> None:
    contents = [operation.get("requestBody", {}), *operation["responses"].values()]
    for content in contents:
        for example in content.get("content", {}).get("application/json", {}).get("examples", {}).values():
            if "value" in example:
                assert msgspec.json.format(msgspec.json.encode(example["value"]), indent=2).decode() in PAGE.words


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_is_in_the_table(code: ErrorCode) -> None:
    retry = "no" if code.final else "yes"
    cells = (f"<code>{code.code}</code>", str(code.http), escape(code.meaning), retry)
    row = "".join(f"<td>{cell}</td>" for cell in cells)
    assert row in TEXT


def test_every_schema_is_on_the_page_and_every_link_leads_somewhere_on_it() -> None:
    places = [attributes["id"] for _tag, attributes in PAGE.elements if "id" in attributes]
    assert len(places) == len(set(places))
    assert {f"schema-{name}" for name in DOCUMENT["components"]["schemas"]} <= set(places)
    links = [link["href"] for link in PAGE.attributes("a")]
    assert {link for link in links if not link.startswith("#")} == {"/openapi.json"}
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= set(places)


def test_the_page_and_its_parts_name_no_other_host() -> None:
    links = [value for _tag, attributes in PAGE.elements for value in attributes.values() if "//" in value]
    assert links == []
    without_examples = re.sub(r"<(pre|textarea)[ >].*?</\1>", "", TEXT, flags=re.DOTALL)
    assert "://" not in without_examples
    for part in (docs_page.TEMPLATE.template, docs_page.STYLE, docs_page.SCRIPT):
        assert "://" not in part
        assert "@import" not in part
        assert "url(" not in part


def test_nothing_is_fetched_to_show_the_page() -> None:
    assert not any("src" in attributes or "srcset" in attributes for _tag, attributes in PAGE.elements)
    assert PAGE.attributes("link") == [{"rel": "icon", "href": "data:,"}]


def test_without_a_script_the_page_says_what_is_missing_and_where_the_document_is() -> None:
    assert "<noscript>" in TEXT
    assert '<a href="/openapi.json">' in TEXT
    waiting = [attributes for attributes in PAGE.attributes("form") if "hidden" not in attributes]
    assert waiting == []


def test_every_field_has_a_label_and_every_section_a_heading() -> None:
    labels = [label["for"] for label in PAGE.attributes("label")]
    fields = [attributes["id"] for tag, attributes in PAGE.elements if tag in _LABELLED]
    assert sorted(labels) == sorted(fields)
    headings = {attributes.get("id") for tag, attributes in PAGE.elements if tag == "h2"}
    assert {section["aria-labelledby"] for section in PAGE.attributes("section")} <= headings
    levels = [int(tag[1]) for tag, _attributes in PAGE.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert PAGE.attributes("html") == [{"lang": "en"}]


def test_a_key_is_typed_into_a_password_field_and_kept_nowhere() -> None:
    secret = [field for field in PAGE.attributes("input") if field["id"] in ("key", "token")]
    assert [(field["type"], field["autocomplete"], "name" in field) for field in secret] == [
        ("password", "off", False),
        ("password", "off", False),
    ]
    for word in ("localStorage", "sessionStorage", "indexedDB", "cookie", "history", "location", "postMessage"):
        assert word not in docs_page.SCRIPT


def test_the_script_inserts_text_and_never_markup() -> None:
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval",
        "Function",
        "setAttribute",
        "on",
    ):
        assert not re.search(rf"\.{word}\b|\b{word}\(", docs_page.SCRIPT), word
    assert "</" not in docs_page.SCRIPT
    assert "</" not in docs_page.STYLE


def test_what_the_script_looks_for_is_on_the_page() -> None:
    for place in set(re.findall(r'"#([a-z]+)"', docs_page.SCRIPT)):
        assert f'id="{place}"' in TEXT
    for name in set(re.findall(r'"\.([a-z]+)"', docs_page.SCRIPT)):
        assert f'class="{name}"' in TEXT
    for name in set(re.findall(r"dataset\.([a-z]+)", docs_page.SCRIPT)):
        assert f"data-{name}=" in TEXT


HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;`<b>`"


def hostile(value: Any) -> Any:
    """Return the document with every sentence replaced by an attack."""
    if isinstance(value, dict):
        texts = ("description", "summary", "title")
        return {
            name: HOSTILE if name in texts and isinstance(item, str) else hostile(item) for name, item in value.items()
        }
    return [hostile(item) for item in value] if isinstance(value, list) else value


def test_a_sentence_of_the_document_never_becomes_markup() -> None:
    page = Read(docs_page.render(hostile(msgspec.json.decode(msgspec.json.encode(DOCUMENT)))))
    assert {tag for tag, _attributes in page.elements} == {tag for tag, _attributes in PAGE.elements}
    assert len(page.attributes("script")) == 1
    assert "<img src=x onerror=alert(1)>" in page.words


def test_an_attribute_cannot_be_broken_out_of() -> None:
    example = {"name": HOSTILE, "in": "path", "required": True, "description": "", "schema": {"type": "string"}}
    changed = msgspec.json.decode(msgspec.json.encode(DOCUMENT))
    changed["paths"]["/health"]["get"]["parameters"] = [example | {"example": HOSTILE}]
    page = Read(docs_page.render(changed))
    assert HOSTILE in [field.get("placeholder") for field in page.attributes("input")]
    assert not any(name.startswith("on") for _tag, attributes in page.elements for name in attributes)


def test_a_schema_that_holds_itself_is_shown_once_and_then_linked() -> None:
    changed = msgspec.json.decode(msgspec.json.encode(DOCUMENT))
    left = {"$ref": "#/components/schemas/Left"}
    changed["components"]["schemas"] |= {
        "Left": {"type": "object", "properties": {"right": {"$ref": "#/components/schemas/Right"}}},
        "Right": {
            "type": "object",
            "properties": {"left": {"anyOf": [left, {"type": "null"}]}, "many": {"items": left}},
        },
    }
    changed["paths"]["/health"]["get"]["responses"]["200"]["content"]["application/json"]["schema"] = left
    page = docs_page.render(changed)
    assert '<a href="#schema-Left">Left</a>' in page
    assert len(page) < 2 * len(TEXT)


def test_a_route_that_answers_with_something_else_than_json_says_so() -> None:
    changed = msgspec.json.decode(msgspec.json.encode(DOCUMENT))
    changed["paths"]["/health"]["get"]["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
    assert "200 returns text/plain." in docs_page.render(changed)


def test_a_route_that_answers_with_nothing_is_shown() -> None:
    changed = msgspec.json.decode(msgspec.json.encode(DOCUMENT))
    del changed["paths"]["/health"]["get"]["responses"]["200"]["content"]
    assert "200 has no body." in docs_page.render(changed)


def test_the_policy_lets_in_the_page_s_own_style_and_script_and_nothing_else() -> None:
    response = asyncio.run(docs.docs.run(cast(RequestContext, None)))
    headers = {name.decode(): value.decode() for name, value in response.headers}
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    text = response.body.decode()
    for kind, tag in (("style-src", "style"), ("script-src", "script")):
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert policy[kind] == f"'sha256-{digest}'"
    assert policy["connect-src"] == "'self'"
    assert policy["default-src"] == policy["form-action"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert not re.search(r"<[a-z][^>]*\s(?:style|on\w+)=", text)


def test_the_page_is_made_once() -> None:
    assert asyncio.run(docs.docs.run(cast(RequestContext, None))) is asyncio.run(
        docs.docs.run(cast(RequestContext, None))
    )
    assert msgspec.json.decode(asyncio.run(docs.openapi.run(cast(RequestContext, None))).body)["openapi"] == "3.1.0"
