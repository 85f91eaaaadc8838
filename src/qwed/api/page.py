"""The API document as one HTML page: everything is in it, nothing is fetched; a script only adds search and forms."""

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import msgspec

from qwed.api.markup import Html, details, element, joined, prose, table, void
from qwed.api.schema_words import Json, fields_shown, kind_shown, shape_shown
from qwed.words import ErrorCode

_STATIC = files("qwed.api") / "static"
TEMPLATE = Template((_STATIC / "page.html").read_text())
STYLE = (_STATIC / "page.css").read_text()
SCRIPT = (_STATIC / "page.js").read_text()

_JSON = "application/json"


def render(document: Json) -> str:
    """The page."""
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
        operations=joined(_tag(document, tag, operations) for tag in tags_of(document)),
        codes=_codes(),
        schemas=joined(_component(document, name) for name in sorted(document["components"]["schemas"])),
    )


def _operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def tags_of(document: Json) -> list[Json]:
    """The tags in their order, then those that operations have and no sentence describes."""
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
    ends = [element("li", element("a", name, href=f"#{place}")) for place, name in _ENDS.items()]
    return element("ul", *links, *ends)


_ENDS = {"codes": "Error codes", "schemas": "Schemas"}


def _tag(document: Json, tag: Json, operations: list[tuple[str, str, Json]]) -> Html:
    own = [_article(document, *each) for each in operations if each[2]["tags"][0] == tag["name"]]
    heading = f"tag-{tag['name']}"
    return element(
        "section",
        element("h2", tag["name"], id=heading),
        element("p", prose(tag["description"])),
        *own,
        class_="tag",
        aria_labelledby=heading,
    )


def _article(document: Json, method: str, path: str, operation: Json) -> Html:
    name = operation["operationId"]
    heading = element("h3", element("span", method, class_=f"method {method}"), " ", element("code", path))
    answers = " ".join(each["description"] for each in operation["responses"].values())
    words = f"{method} {path} {name} {operation['summary']} {operation['description']} {answers}".lower()
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
        data_words=words,
    )


_WHO = {0: "No credential is needed.", 1: "Takes an organisation key in X-API-Key."}


def _credentials(operation: Json) -> str:
    both = "Takes an organisation key in X-API-Key, or the agent's own token as Authorization: Bearer."
    return _WHO.get(len(operation["security"]), both)


def _parameters(operation: Json) -> Html:
    rows = [
        [
            element("code", each["name"]),
            each["in"] + (", required" if each["required"] else ""),
            kind_shown(each["schema"]),
            prose(each["description"]),
        ]
        for each in operation["parameters"]
    ]
    return table("Parameters", ["name", "in", "takes", "what for"], rows) if rows else Html()


def _request(document: Json, operation: Json) -> Html:
    if "requestBody" not in operation:
        return Html()
    content = operation["requestBody"]["content"][_JSON]
    shape = details("The fields of the body", shape_shown(document, content["schema"]))
    examples = content.get("examples", {})
    return joined([element("h4", "Body"), shape, *(_example(each, usable=True) for each in examples.values())])


def _answers(document: Json, operation: Json) -> Html:
    rows = [[element("code", status), prose(each["description"])] for status, each in operation["responses"].items()]
    shown = [_answer(document, status, each) for status, each in operation["responses"].items()]
    return joined([element("h4", "Answers"), table("Statuses", ["status", "what it says"], rows), *shown])


def _answer(document: Json, status: str, answer: Json) -> Html:
    told = answer.get("content", {})
    content = told.get(_JSON)
    if content is None:
        return element("p", f"{status} is {', '.join(told)}." if told else f"{status} has no body.")
    own = [each for each in content.get("examples", {}).values() if "value" in each]
    if not own and not status.startswith("2"):
        return Html()
    headers = ", ".join(answer.get("headers", {}))
    said = element("p", f"Headers: {headers}", class_="quiet") if headers else Html()
    shape = details("The fields of the answer", shape_shown(document, content["schema"]))
    return details(f"What {status} looks like", said, shape, *(_example(each) for each in own))


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
    fields = [_input(name, each) for each in operation["parameters"]]
    if "requestBody" in operation:
        examples = operation["requestBody"]["content"][_JSON].get("examples", {})
        first = next((_text(each["value"]) for each in examples.values()), "{}")
        label = element("label", "Body", for_=f"{name}-body")
        fields.append(joined([element("p", label), element("textarea", first, id=f"{name}-body", spellcheck="false")]))
    answer = element(
        "div",
        element("p", class_="status", role="status"),
        element("pre", class_="headers", aria_label="Headers of the answer"),
        element("pre", class_="body", tabindex="0", aria_label="Body of the answer"),
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
    place, name = f"{operation}-{parameter['name']}", parameter["name"]
    hint = str(parameter.get("example", ""))
    required = {"required": ""} if parameter["required"] else {}
    box = void("input", id=place, name=name, data_in=parameter["in"], placeholder=hint, autocomplete="off", **required)
    return element("p", element("label", name, for_=place), box)


def _component(document: Json, name: str) -> Html:
    return details(name, fields_shown(document, document["components"]["schemas"][name], (name,)), id=f"schema-{name}")


def _codes() -> Html:
    rows = [
        [element("code", row.code), str(row.http), row.meaning, "no" if row.final else "yes"]
        for row in sorted(ErrorCode, key=lambda row: row.code)
    ]
    return table("Every code", ["code", "HTTP", "meaning", "may the same request pass later"], rows)
