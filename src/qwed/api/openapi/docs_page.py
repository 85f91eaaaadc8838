"""/docs as one self-contained HTML page; a script adds search and request forms."""

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import msgspec

from qwed.api.openapi.html_builder import Html, details, element, join, prose, table, void_element
from qwed.api.openapi.schema_text import Json, fields_html, schema_html, type_text
from qwed.model import ErrorCode

_STATIC = files("qwed.api.openapi") / "static"
TEMPLATE = Template((_STATIC / "page.html").read_text())
STYLE = (_STATIC / "page.css").read_text()
SCRIPT = (_STATIC / "page.js").read_text()

_JSON = "application/json"


def render(document: Json) -> str:
    """Return the page."""
    info = document["info"]
    operations = list(_operations(document))
    return TEMPLATE.substitute(
        title=escape(f"{info['title']} {info['version']}: HTTP API"),
        heading=escape(f"{info['title']} {info['version']}"),
        summary=prose(info["summary"]),
        description=prose(info["description"]),
        style=STYLE,
        script=SCRIPT,
        contents=_contents(document, operations),
        operations=join(_tag(document, tag, operations) for tag in tags_of(document)),
        codes=_codes(),
        schemas=join(_component(document, name) for name in sorted(document["components"]["schemas"])),
    )


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def tags_of(document: Json) -> list[Json]:
    """Return the tags in order, followed by tags of operations without a description."""
    described: list[Json] = list(document["tags"])
    names = [tag["name"] for tag in described]
    used = [operation["tags"][0] for _method, _path, operation in _operations(document)]
    return described + [{"name": name, "description": ""} for name in dict.fromkeys(used) if name not in names]


def _contents(document: Json, operations: list[tuple[str, str, Json]]) -> Html:
    links = [
        element("li", element("a", f"{method} {path}", href=f"#{operation['operationId']}"), " ", operation["summary"])
        for tag in tags_of(document)
        for method, path, operation in operations
        if operation["tags"][0] == tag["name"]
    ]
    ends = [element("li", element("a", name, href=f"#{anchor}")) for anchor, name in _EXTRA_LINKS.items()]
    return element("ul", *links, *ends)


_EXTRA_LINKS = {"codes": "Error codes", "schemas": "Schemas"}


def _tag(document: Json, tag: Json, operations: list[tuple[str, str, Json]]) -> Html:
    articles = [_operation_html(document, *item) for item in operations if item[2]["tags"][0] == tag["name"]]
    heading = f"tag-{tag['name']}"
    return element(
        "section",
        element("h2", tag["name"], id=heading),
        element("p", prose(tag["description"])),
        *articles,
        class_="tag",
        aria_labelledby=heading,
    )


def _operation_html(document: Json, method: str, path: str, operation: Json) -> Html:
    name = operation["operationId"]
    heading = element("h3", element("span", method, class_=f"method {method}"), " ", element("code", path))
    answers = " ".join(item["description"] for item in operation["responses"].values())
    search_text = f"{method} {path} {name} {operation['summary']} {operation['description']} {answers}".lower()
    return element(
        "article",
        heading,
        element("p", element("strong", operation["summary"])),
        element("p", prose(operation["description"])),
        element("p", _credentials(operation), class_="quiet"),
        _parameters(operation),
        _request(document, operation),
        _answers(document, operation),
        _form(method, path, operation),
        id=name,
        data_words=search_text,
    )


_CREDENTIALS = {0: "No credential is required.", 1: "Requires an organisation key in X-API-Key."}


def _credentials(operation: Json) -> str:
    both = "Requires an organisation key in X-API-Key, or the agent's token in Authorization: Bearer."
    return _CREDENTIALS.get(len(operation["security"]), both)


def _parameters(operation: Json) -> Html:
    rows = [
        [
            element("code", item["name"]),
            item["in"] + (", required" if item["required"] else ""),
            type_text(item["schema"]),
            prose(item["description"]),
        ]
        for item in operation["parameters"]
    ]
    return table("Parameters", ["name", "in", "type", "description"], rows) if rows else Html()


def _request(document: Json, operation: Json) -> Html:
    if "requestBody" not in operation:
        return Html()
    content = operation["requestBody"]["content"][_JSON]
    shape = details("Body fields", schema_html(document, content["schema"]))
    examples = content.get("examples", {})
    return join([element("h4", "Body"), shape, *(_example(item, usable=True) for item in examples.values())])


def _answers(document: Json, operation: Json) -> Html:
    rows = [[element("code", status), prose(item["description"])] for status, item in operation["responses"].items()]
    responses = [_answer(document, status, item) for status, item in operation["responses"].items()]
    return join([element("h4", "Responses"), table("Statuses", ["status", "description"], rows), *responses])


def _answer(document: Json, status: str, answer: Json) -> Html:
    media_types = answer.get("content", {})
    content = media_types.get(_JSON)
    if content is None:
        return element("p", f"{status} returns {', '.join(media_types)}." if media_types else f"{status} has no body.")
    examples = [item for item in content.get("examples", {}).values() if "value" in item]
    if not examples and not status.startswith("2"):
        return Html()
    headers = ", ".join(answer.get("headers", {}))
    header_text = element("p", f"Headers: {headers}", class_="quiet") if headers else Html()
    shape = details("Response fields", schema_html(document, content["schema"]))
    return details(f"Response {status}", header_text, shape, *(_example(item) for item in examples))


def _example(example: Json, *, usable: bool = False) -> Html:
    button = element("button", "Use this body", type="button", class_="use", hidden="") if usable else Html()
    caption = element("figcaption", example["summary"], " ", button)
    return details(
        f"Example: {example['summary']}", element("figure", caption, element("pre", _text(example["value"])))
    )


def _text(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _form(method: str, path: str, operation: Json) -> Html:
    name = operation["operationId"]
    fields = [_input(name, item) for item in operation["parameters"]]
    if "requestBody" in operation:
        examples = operation["requestBody"]["content"][_JSON].get("examples", {})
        first = next((_text(item["value"]) for item in examples.values()), "{}")
        label = element("label", "Body", for_=f"{name}-body")
        fields.append(join([element("p", label), element("textarea", first, id=f"{name}-body", spellcheck="false")]))
    answer = element(
        "div",
        element("p", class_="status", role="status"),
        element("pre", class_="headers", aria_label="Response headers"),
        element("pre", class_="body", tabindex="0", aria_label="Response body"),
        class_="answer",
        hidden="",
    )
    credential = ("none", "key", "token")[len(operation["security"])]
    return element(
        "form",
        element("h4", "Try it"),
        *fields,
        element("p", element("button", f"Send {method} {path}", type="submit")),
        answer,
        class_="try",
        hidden="",
        data_method=method,
        data_path=path,
        data_credential=credential,
    )


def _input(operation: str, parameter: Json) -> Html:
    anchor, name = f"{operation}-{parameter['name']}", parameter["name"]
    hint = str(parameter.get("example", ""))
    required = {"required": ""} if parameter["required"] else {}
    box = void_element(
        "input", id=anchor, name=name, data_in=parameter["in"], placeholder=hint, autocomplete="off", **required
    )
    return element("p", element("label", name, for_=anchor), box)


def _component(document: Json, name: str) -> Html:
    return details(name, fields_html(document, document["components"]["schemas"][name], (name,)), id=f"schema-{name}")


def _codes() -> Html:
    rows = [
        [element("code", row.code), str(row.http), row.meaning, "no" if row.final else "yes"]
        for row in sorted(ErrorCode, key=lambda row: row.code)
    ]
    return table("Error codes", ["code", "HTTP", "meaning", "can be retried"], rows)
