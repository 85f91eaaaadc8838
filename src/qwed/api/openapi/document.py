"""OpenAPI 3.1 document, generated from the route table, the Struct types, the error codes and the tested examples."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

import qwed
from qwed.api.openapi.descriptions import (
    COMMON_ERRORS,
    EXTRA_STATUSES,
    HEADER_PARAMETERS,
    HEADERS,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    PATH_ERRORS,
    PATH_PARAMETERS,
    RATE_HEADERS,
    RETRY_STATUSES,
    ROUTE_HEADERS,
    SCHEMA_CONSTRAINTS,
    SECURITY_SCHEMES,
    TAGS,
    ParameterDoc,
    Schema,
    tag_of,
)
from qwed.api.openapi.examples import EXAMPLES, Example
from qwed.api.routes import ROUTES, Route
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.verification.request import AnyParams
from qwed.kernel.views.agent_views import View
from qwed.model import Decision, ErrorCode

JSON, MERGE_PATCH = "application/json", "application/merge-patch+json"
_PATH_PARAMETER = re.compile(r"{(\w+)}")
_SECTION = re.compile(r" \(spec [\d.]+\)")
_REF = "#/components/schemas/{name}"
_CODES = "ErrorCode"
_UNDOCUMENTED = ParameterDoc({"type": "string"}, "")
_DESCRIPTION = (
    "Every decision has the status 200, except BUDGET_EXCEEDED, which is 429. A request that is refused before a "
    "decision has the status of its error code. All errors have the same format. Bodies are JSON of at most 1 MiB, "
    "nested at most 64 levels; unknown fields and duplicate keys are refused. Times are RFC 3339 in UTC, amounts are "
    "US dollars with at most six decimals."
)


class ProblemView(View, frozen=True, kw_only=True):
    """Error outside a decision."""

    error: Problem


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = _types()
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    schemas_by_type = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas_by_type)
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
            "schemas": _add_constraints(components),
            "examples": _code_examples(),
            "headers": HEADERS,
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


def _types() -> list[Any]:
    types = [ProblemView, Answer, AnyParams]
    for route in ROUTES:
        types += [kind for kind in (route.body, route.response) if kind is not None and kind not in types]
    return types


def _add_constraints(components: dict[str, Any]) -> dict[str, Any]:
    """Return the components with constraints between fields, and with the error codes as an enum."""
    meanings: dict[str, str] = {}
    for row in ErrorCode:
        meanings[row.code] = f"{meanings[row.code]}; or {row.meaning}" if row.code in meanings else row.meaning
    codes = {
        "title": _CODES,
        "description": "Error codes.",
        "type": "string",
        "enum": list(meanings),
        "x-enum-descriptions": meanings,
    }
    properties = {**components["Problem"]["properties"], "code": {"$ref": _REF.format(name=_CODES)}}
    refined = {name: _merge(schema, SCHEMA_CONSTRAINTS.get(name, {})) for name, schema in components.items()}
    return {**refined, "Problem": {**components["Problem"], "properties": properties}, _CODES: codes}


def _merge(schema: Schema, constraints: Schema) -> Schema:
    both = {
        name: _merge(schema[name], value) for name, value in constraints.items() if isinstance(schema.get(name), dict)
    }
    return schema | constraints | both


def _operation(route: Route, schemas_by_type: dict[str, Schema]) -> dict[str, Any]:
    name = route.name
    docs = EXAMPLES.get(name)
    summary = _SECTION.sub("", route.summary)
    operation: dict[str, Any] = {
        "operationId": name,
        "tags": [tag_of(route.path)],
        "summary": summary,
        "description": summary if docs is None else docs.description,
        "parameters": _parameters(route),
        "responses": _responses(route, schemas_by_type),
        "security": security_of(route),
    }
    if route.body is not None:
        content = _content(schemas_by_type[str(route.body)], _example_objects(_examples(route), "body"))
        if route.method == "PATCH":
            content = {MERGE_PATCH: content[JSON], **content}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def security_of(route: Route) -> list[dict[str, list[str]]]:
    """Return the credentials of a route: none, an organisation key, or also an agent token."""
    if route.open:
        return []
    return [{"organisation": []}, {"agent": []}] if route.takes_token else [{"organisation": []}]


def _parameters(route: Route) -> list[Schema]:
    path = [
        _parameter(route, name, "path", PATH_PARAMETERS.get(name, _UNDOCUMENTED))
        for name in _PATH_PARAMETER.findall(route.path)
    ]
    query = [_parameter(route, name, "query", doc) for name, doc in _query_docs(route).items()]
    header = [_parameter_object("Idempotency-Key", "header", IDEMPOTENCY_KEY)] if route.is_decision else []
    condition = {"If-Match": IF_MATCH[tag_of(route.path)]} if route.conditional else {}
    own = HEADER_PARAMETERS.get(route.path, {}) | condition
    return path + query + header + [_parameter_object(name, "header", doc) for name, doc in own.items()]


def _query_docs(route: Route) -> dict[str, ParameterDoc]:
    """Return the parameters of the query string, whose type is that which parses them."""
    if not route.query:
        return {}
    properties = next(iter(msgspec.json.schema(route.request)["$defs"].values()))["properties"]
    return {name: _query_doc(schema) for name, schema in properties.items()}


def _query_doc(schema: Schema) -> ParameterDoc:
    # A parameter is left out, and never null.
    default = {} if schema.get("default") is None else {"default": schema["default"]}
    kind = next((choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"), schema)
    kind = kind if "description" in kind else schema
    return ParameterDoc(
        {name: value for name, value in kind.items() if name not in ("description", "default")} | default,
        kind.get("description", ""),
    )


def _parameter(route: Route, name: str, location: str, doc: ParameterDoc) -> Schema:
    parameter = _parameter_object(name, location, doc)
    sent = [getattr(example, location).get(name) for example in _examples(route)]
    value = next((value for value in sent if value is not None), None)
    if value is not None:
        parameter["example"] = int(value) if doc.schema.get("type") == "integer" else value
    return parameter


def _parameter_object(name: str, location: str, doc: ParameterDoc) -> Schema:
    return {
        "name": name,
        "in": location,
        "required": location == "path",
        "description": doc.description,
        "schema": doc.schema,
    }


def _responses(route: Route, schemas_by_type: dict[str, Schema]) -> dict[str, Any]:
    answers = {str(status): _success(route, status, schemas_by_type) for status in (route.status, *route.also)}
    for status, codes in errors_of(route).items():
        if status != 200:
            answers[str(status)] = _error(route, status, codes, schemas_by_type)
    return answers


def _success(route: Route, status: int, schemas_by_type: dict[str, Schema]) -> Schema:
    description = EXTRA_STATUSES.get((route.path, status)) or _success_text(route)
    headers = _headers_of(status) | ROUTE_HEADERS.get(route.path, {})
    if route.etag_of is not None:
        headers["ETag"] = {"$ref": "#/components/headers/ETag"}
    return {"description": description, "headers": headers} | _success_content(route, status, schemas_by_type)


def _success_text(route: Route) -> str:
    summary = _SECTION.sub("", route.summary)
    if not route.is_decision:
        return summary
    codes = dict.fromkeys(row.code for row in ErrorCode if row.http == 200)
    listed = ", ".join(code for code in codes if not code.startswith(_ATTESTATION_CODES))
    return f"The decision. If it is DENIED or PENDING, `error.code` is one of {listed}."


def _success_content(route: Route, status: int, schemas_by_type: dict[str, Schema]) -> Schema:
    media = getattr(route, "media", JSON)
    matching = [example for example in _examples(route) if example.status == status]
    if route.response is None:
        return {}
    if media != JSON:
        return {"content": {media: {"schema": {"type": "string"}}}}
    files = {file: {"schema": {"type": "string"}} for file in route.files}
    return {"content": _content(schemas_by_type[str(route.response)], _example_objects(matching, "answer")) | files}


def errors_of(route: Route) -> dict[int, list[ErrorCode]]:
    """Return every error code of the route by status: its own, and those common to all routes."""
    codes = [*route.errors, *COMMON_ERRORS, *(PATH_ERRORS if "{" in route.path else ())]
    by_status: dict[int, list[ErrorCode]] = {}
    for code in sorted(dict.fromkeys(codes), key=lambda code: (code.http, code.code)):
        by_status.setdefault(code.http, []).append(code)
    return by_status


def _error(route: Route, status: int, codes: list[ErrorCode], schemas_by_type: dict[str, Schema]) -> Schema:
    descriptions = [f"{code.code}: {code.meaning}" for code in codes]
    shapes = [schemas_by_type[str(ProblemView)]]
    if route.is_decision:
        shapes.insert(0, schemas_by_type[str(Answer)])
    extra = EXTRA_STATUSES.get((route.path, status))
    if extra is not None:
        shapes.insert(0, schemas_by_type[str(route.response)])
        descriptions.insert(0, extra)
    schema = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    matching = [example for example in _examples(route) if example.status == status]
    suffix = _DECISION_SUFFIX if route.is_decision else ""
    bodies = {code.code: {"$ref": f"#/components/examples/{code.code}{suffix}"} for code in codes}
    content = _content(schema, _example_objects(matching, "answer") | bodies)
    return {"description": "; ".join(descriptions), "headers": _headers_of(status), "content": content}


def _code_examples() -> dict[str, Schema]:
    """Return a body for every error code, plain and inside a decision."""
    examples: dict[str, Schema] = {}
    for code in ErrorCode:
        if code.http != 200:
            retry_after = 1 if code.http in RETRY_STATUSES else None
            error = msgspec.to_builtins(problem(code, retry_after=retry_after))
            decision = Decision.BUDGET_EXCEEDED if code in _OVER_BUDGET else Decision.DENIED
            examples[code.code] = {"summary": code.meaning, "value": {"error": error}}
            examples[code.code + _DECISION_SUFFIX] = {
                "summary": code.meaning,
                "value": {"decision": decision, "error": error},
            }
    return examples


_DECISION_SUFFIX = "-decision"
_ATTESTATION_CODES = "QWED-ATT-"
"""Prefix of the codes of POST /attestation/verify, which never appear in a decision."""
_OVER_BUDGET = frozenset({ErrorCode.COST_EXCEEDED, ErrorCode.RATE_EXCEEDED, ErrorCode.TOKENS_EXCEEDED})


def _headers_of(status: int) -> Schema:
    names = ["Retry-After", *RATE_HEADERS] if status in RETRY_STATUSES else RATE_HEADERS
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _examples(route: Route) -> tuple[Example, ...]:
    docs = EXAMPLES.get(route.name)
    return () if docs is None else docs.examples


def _example_objects(examples: Iterable[Example], field: str) -> dict[str, Schema]:
    return {
        example.name: {"summary": example.summary, "value": getattr(example, field)}
        for example in examples
        if getattr(example, field) is not msgspec.UNSET
    }


def _content(schema: Schema, examples: dict[str, Schema]) -> Schema:
    return {JSON: {"schema": schema, "examples": examples} if examples else {"schema": schema}}
