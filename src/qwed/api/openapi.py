"""OpenAPI 3.1, made from the route table and the Struct types; nothing in it is written by hand."""

import re
from typing import Any

import msgspec

import qwed
from qwed.api.routes import ROUTES, Route
from qwed.api.shapes import ProblemShape
from qwed.kernel.answer import Answer
from qwed.words import ErrorCode

_IN_PATH = re.compile(r"{(\w+)}")
_REF = "#/components/schemas/{name}"


def document() -> dict[str, Any]:
    """The whole document."""
    types = _types()
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    shown = dict(zip(map(str, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, shown)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "qwed",
            "version": qwed.__version__,
            "summary": "Decides, before an AI agent acts, whether the action may happen.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "organisation": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
                "agent": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _types() -> list[Any]:
    found = [ProblemShape, Answer]
    for route in ROUTES:
        found += [kind for kind in (route.request, route.response) if kind is not None and kind not in found]
    return found


def _operation(route: Route, shown: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": _responses(route, shown),
        "security": [] if route.open else [{"organisation": []}, {"agent": []}],
    }
    if route.request is not None:
        operation["requestBody"] = {"required": True, "content": _json(shown[str(route.request)])}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    path = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in _IN_PATH.findall(route.path)]
    query = [{"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in route.query]
    key = [{"name": "Idempotency-Key", "in": "header", "required": False, "schema": _KEY}] if route.decides else []
    return path + query + key


_TEXT = {"type": "string", "minLength": 1}
_KEY = {"type": "string", "minLength": 1, "maxLength": 255}


def _responses(route: Route, shown: dict[str, Any]) -> dict[str, Any]:
    answers = {str(route.status): {"description": route.summary, "content": _json(shown[str(route.response)])}}
    by_status: dict[int, list[ErrorCode]] = {}
    for code in (*route.errors, ErrorCode.METHOD_NOT_ALLOWED):
        by_status.setdefault(code.http, []).append(code)
    plain = shown[str(ProblemShape)]
    failure = _json({"anyOf": [shown[str(Answer)], plain]} if route.decides else plain)
    for status, codes in sorted(by_status.items()):
        said = "; ".join(f"{code.code}: {code.meaning}" for code in dict.fromkeys(codes))
        answers[str(status)] = {"description": said, "content": failure}
    if route.path == "/ready":
        answers["503"] = {"description": "a part is still starting", "content": _json(shown[str(route.response)])}
    return answers


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
