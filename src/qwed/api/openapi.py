"""OpenAPI 3.1, made from the route table, the Struct types, the codes and the examples that the tests send."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

import qwed
from qwed.api.described import (
    ANYWHERE,
    HEADER_PARAMETERS,
    HEADERS,
    IDEMPOTENCY_KEY,
    ON_A_PATH,
    OWN_HEADERS,
    OWN_PARAMETERS,
    PARAMETERS,
    RATE_HEADERS,
    REFINED,
    RETRY_STATUSES,
    SAME_SHAPE,
    SECURITY_SCHEMES,
    TAGS,
    Described,
    Schema,
    tag_of,
)
from qwed.api.examples import EXAMPLES, Example
from qwed.api.routes import ROUTES, Route
from qwed.api.shapes import ProblemShape
from qwed.kernel.answer import Answer, problem
from qwed.words import Decision, ErrorCode

JSON = "application/json"
_IN_PATH = re.compile(r"{(\w+)}")
_SECTION = re.compile(r" \(spec [\d.]+\)")
_REF = "#/components/schemas/{name}"
_CODES = "ErrorCode"
_UNKNOWN = Described({"type": "string"}, "")
_DESCRIPTION = (
    "A decision is 200 whatever it says, except BUDGET_EXCEEDED, which is 429. What is refused before a decision "
    "exists has the status of its code, and every error has the same shape. Bodies are JSON of at most 1 MiB, nested "
    "at most 64 deep; unknown fields and duplicate keys are refused by name. Times are RFC 3339 in UTC, amounts are US "
    "dollars with at most six decimals."
)


def document() -> dict[str, Any]:
    """The whole document."""
    types = _types()
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    shown = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, shown)
    used = {operation["tags"][0] for path in paths.values() for operation in path.values()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "qwed",
            "version": qwed.__version__,
            "summary": "Decides, before an AI agent acts, whether the action may happen.",
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": tag.name, "description": tag.description} for tag in TAGS if tag.name in used],
        "paths": paths,
        "components": {
            "schemas": _refined(components),
            "examples": _code_examples(),
            "headers": HEADERS,
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _types() -> list[Any]:
    found = [ProblemShape, Answer]
    for route in ROUTES:
        found += [kind for kind in (route.request, route.response) if kind is not None and kind not in found]
    return found


def _refined(components: dict[str, Any]) -> dict[str, Any]:
    """The components with what holds between fields, and with the codes as a closed set, each with its meaning."""
    meanings: dict[str, str] = {}
    for row in ErrorCode:
        meanings[row.code] = f"{meanings[row.code]}; or {row.meaning}" if row.code in meanings else row.meaning
    codes = {
        "title": _CODES,
        "description": "Every code an error can carry.",
        "type": "string",
        "enum": list(meanings),
        "x-enum-descriptions": meanings,
    }
    properties = {**components["Problem"]["properties"], "code": {"$ref": _REF.format(name=_CODES)}}
    refined = {name: schema | REFINED.get(name, {}) for name, schema in components.items()}
    return {**refined, "Problem": {**components["Problem"], "properties": properties}, _CODES: codes}


def _operation(route: Route, shown: dict[str, Schema]) -> dict[str, Any]:
    name = route.handler.__name__
    said = EXAMPLES.get(name)
    summary = _SECTION.sub("", route.summary)
    operation: dict[str, Any] = {
        "operationId": name,
        "tags": [tag_of(route.path)],
        "summary": summary,
        "description": summary if said is None else said.description,
        "parameters": _parameters(route),
        "responses": _responses(route, shown),
        "security": security_of(route),
    }
    if route.request is not None:
        asked = _content(shown[str(route.request)], _named(_examples(route), "body"))
        operation["requestBody"] = {"required": True, "content": asked}
    return operation


def security_of(route: Route) -> list[dict[str, list[str]]]:
    """Who may call: anyone; a key of the organisation; or, where a token can be wrong, an agent with its token."""
    if route.open:
        return []
    return [{"organisation": []}, {"agent": []}] if route.takes_token else [{"organisation": []}]


def _parameters(route: Route) -> list[Schema]:
    path = [_parameter(route, name, "path") for name in _IN_PATH.findall(route.path)]
    query = [_parameter(route, name, "query") for name in route.query]
    header = [_shown("Idempotency-Key", "header", IDEMPOTENCY_KEY)] if route.decides else []
    own = HEADER_PARAMETERS.get(route.path, {})
    return path + query + header + [_shown(name, "header", described) for name, described in own.items()]


def _parameter(route: Route, name: str, place: str) -> Schema:
    described = OWN_PARAMETERS.get((route.path, name)) or PARAMETERS.get(name, _UNKNOWN)
    shown = _shown(name, place, described)
    sent = [getattr(example, place).get(name) for example in _examples(route)]
    given = next((value for value in sent if value is not None), None)
    if given is not None:
        shown["example"] = int(given) if described.schema.get("type") == "integer" else given
    return shown


def _shown(name: str, place: str, described: Described) -> Schema:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "description": described.description,
        "schema": described.schema,
    }


def _responses(route: Route, shown: dict[str, Schema]) -> dict[str, Any]:
    answers = {str(status): _success(route, status, shown) for status in (route.status, *route.also)}
    for status, codes in errors_of(route).items():
        if status != 200:
            answers[str(status)] = _error(route, status, codes, shown)
    return answers


def _success(route: Route, status: int, shown: dict[str, Schema]) -> Schema:
    said = SAME_SHAPE.get((route.path, status)) or _success_of(route)
    headers = _headers_of(status) | OWN_HEADERS.get(route.path, {})
    return {"description": said, "headers": headers} | _success_content(route, status, shown)


def _success_of(route: Route) -> str:
    summary = _SECTION.sub("", route.summary)
    if not route.decides:
        return summary
    codes = dict.fromkeys(row.code for row in ErrorCode if row.http == 200)
    said = ", ".join(code for code in codes if not code.startswith(_OF_ATTESTATIONS))
    return f"The decision. Where it is DENIED or PENDING, `error.code` says why: {said}."


def _success_content(route: Route, status: int, shown: dict[str, Schema]) -> Schema:
    media = getattr(route, "media", JSON)
    told = [example for example in _examples(route) if example.status == status]
    if route.response is None:
        return {}
    if media != JSON:
        return {"content": {media: {"schema": {"type": "string"}}}}
    files = {file: {"schema": {"type": "string"}} for file in route.files}
    return {"content": _content(shown[str(route.response)], _named(told, "answer")) | files}


def errors_of(route: Route) -> dict[int, list[ErrorCode]]:
    """Every code the route can answer with, by status: its own, and those that any route like it can give."""
    codes = [*route.errors, *ANYWHERE, *(ON_A_PATH if "{" in route.path else ())]
    by_status: dict[int, list[ErrorCode]] = {}
    for code in sorted(dict.fromkeys(codes), key=lambda code: (code.http, code.code)):
        by_status.setdefault(code.http, []).append(code)
    return by_status


def _error(route: Route, status: int, codes: list[ErrorCode], shown: dict[str, Schema]) -> Schema:
    said = [f"{code.code}: {code.meaning}" for code in codes]
    shapes = [shown[str(ProblemShape)]]
    if route.decides:
        shapes.insert(0, shown[str(Answer)])
    same = SAME_SHAPE.get((route.path, status))
    if same is not None:
        shapes.insert(0, shown[str(route.response)])
        said.insert(0, same)
    schema = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    answered = [example for example in _examples(route) if example.status == status]
    suffix = _DECIDED if route.decides else ""
    bodies = {code.code: {"$ref": f"#/components/examples/{code.code}{suffix}"} for code in codes}
    content = _content(schema, _named(answered, "answer") | bodies)
    return {"description": "; ".join(said), "headers": _headers_of(status), "content": content}


def _code_examples() -> dict[str, Schema]:
    """A body for every code, plain and as the decision that carries it."""
    found: dict[str, Schema] = {}
    for code in ErrorCode:
        if code.http != 200:
            retry_after = 1 if code.http in RETRY_STATUSES else None
            error = msgspec.to_builtins(problem(code, retry_after=retry_after))
            decision = Decision.BUDGET_EXCEEDED if code in _OVER_BUDGET else Decision.DENIED
            found[code.code] = {"summary": code.meaning, "value": {"error": error}}
            found[code.code + _DECIDED] = {"summary": code.meaning, "value": {"decision": decision, "error": error}}
    return found


_DECIDED = "-decision"
_OF_ATTESTATIONS = "QWED-ATT-"
"""Codes of what POST /attestation/verify finds, which no decision carries."""
_OVER_BUDGET = frozenset({ErrorCode.COST_EXCEEDED, ErrorCode.RATE_EXCEEDED, ErrorCode.TOKENS_EXCEEDED})


def _headers_of(status: int) -> Schema:
    names = ["Retry-After", *RATE_HEADERS] if status in RETRY_STATUSES else RATE_HEADERS
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _examples(route: Route) -> tuple[Example, ...]:
    said = EXAMPLES.get(route.handler.__name__)
    return () if said is None else said.examples


def _named(examples: Iterable[Example], field: str) -> dict[str, Schema]:
    return {
        example.name: {"summary": example.summary, "value": getattr(example, field)}
        for example in examples
        if getattr(example, field) is not msgspec.UNSET
    }


def _content(schema: Schema, examples: dict[str, Schema]) -> Schema:
    return {JSON: {"schema": schema, "examples": examples} if examples else {"schema": schema}}
