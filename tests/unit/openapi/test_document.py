"""The OpenAPI document: every route is described, every reference resolves, every example is valid."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31

from qwed.api.openapi.descriptions import PATH_PARAMETERS, TAGS, tag_of
from qwed.api.openapi.document import document, errors_of, security_of
from qwed.api.openapi.examples import EXAMPLES, Example
from qwed.api.routes import ROUTES, Route
from qwed.model import ErrorCode

Json = dict[str, Any]

DOCUMENT: Json = msgspec.json.decode(msgspec.json.encode(document()))
NAMED = {route.name: route for route in ROUTES}
SENT = [(name, example) for name, operation in EXAMPLES.items() for example in operation.examples]


def operation_of(route: Route) -> Json:
    node: Json = DOCUMENT["paths"][route.path][route.method.lower()]
    return node


def every_route() -> Any:
    return pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")


def every_example() -> Any:
    return pytest.mark.parametrize(("name", "example"), SENT, ids=lambda item: getattr(item, "name", item))


def nodes(value: Any) -> Iterator[Json]:
    """Yield every object in the document."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(item)


def resolved(reference: str) -> Any:
    node: Any = DOCUMENT
    for step in reference.removeprefix("#/").split("/"):
        node = node[step]
    return node


def schema_errors(schema: Json, value: Any) -> list[str]:
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    return [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(value)]


def test_the_document_is_valid_openapi_3_1() -> None:
    errors = jsonschema_rs.validator_for(OPENAPI_31).iter_errors(DOCUMENT)
    assert [f"{error.instance_path}: {error.message}" for error in errors] == []


def test_every_reference_leads_somewhere() -> None:
    for node in nodes(DOCUMENT):
        if isinstance(node.get("$ref"), str):
            assert resolved(node["$ref"]) is not None


def test_no_two_operations_share_an_id() -> None:
    names = [route.name for route in ROUTES]
    assert sorted(names) == sorted(set(names))


@every_route()
def test_a_route_has_a_description_and_an_example(route: Route) -> None:
    name = route.name
    assert name in EXAMPLES, f"write the description and an example of `{name}` into static/examples.json"
    good = {route.status, *route.also}
    assert any(example.status in good for example in EXAMPLES[name].examples), f"no example of `{name}` succeeds"
    assert operation_of(route)["description"] == EXAMPLES[name].description


def test_no_example_is_of_a_route_that_is_gone() -> None:
    assert [name for name in EXAMPLES if name not in NAMED] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_an_operation_have_names_of_their_own(name: str) -> None:
    names = [example.name for example in EXAMPLES[name].examples]
    assert sorted(names) == sorted(set(names))


@every_route()
def test_a_route_belongs_to_a_tag_with_a_sentence(route: Route) -> None:
    assert tag_of(route.path) in {tag.name for tag in TAGS}, f"give `{route.path}` a tag in descriptions.py"
    assert operation_of(route)["tags"] == [tag_of(route.path)]


@every_route()
def test_the_parameters_of_a_route_are_declared_and_described(route: Route) -> None:
    in_path = re.findall(r"{(\w+)}", route.path)
    parameters = operation_of(route)["parameters"]
    assert [item["name"] for item in parameters if item["in"] == "path"] == in_path
    assert [item["name"] for item in parameters if item["in"] == "query"] == list(route.query)
    assert all(item["required"] is (item["in"] == "path") for item in parameters)
    for item in parameters:
        assert item["description"], f"describe the parameter `{item['name']}` of {route.path}"


def test_no_parameter_is_described_for_a_route_that_does_not_take_it() -> None:
    used = {name for route in ROUTES for name in re.findall(r"{(\w+)}", route.path)}
    assert [name for name in PATH_PARAMETERS if name not in used] == []


@every_route()
def test_every_code_of_a_route_is_named_under_its_status_with_a_body(route: Route) -> None:
    answers = operation_of(route)["responses"]
    for code in route.errors:
        if code.http == 200:
            continue
        answer = answers[str(code.http)]
        assert f"{code.code}: {code.meaning}" in answer["description"]
        assert code.code in answer["content"]["application/json"]["examples"]


@every_route()
def test_the_body_printed_for_a_code_fits_what_the_answer_may_be(route: Route) -> None:
    for status, codes in errors_of(route).items():
        if status == 200:
            continue
        content = operation_of(route)["responses"][str(status)]["content"]["application/json"]
        for code in codes:
            body = resolved(content["examples"][code.code]["$ref"])["value"]
            assert schema_errors(content["schema"], body) == []
            assert body["error"]["code"] == code.code
            assert ("decision" in body) is route.is_decision


@every_route()
def test_any_route_may_be_too_busy_and_says_for_how_long(route: Route) -> None:
    answers = operation_of(route)["responses"]
    for status in ("429", "503"):
        assert "Retry-After" in answers[status]["headers"]
    assert {"413", "400"} <= set(answers)
    assert all("X-RateLimit-Remaining" in answer["headers"] for answer in answers.values())


@every_route()
def test_who_may_call_is_read_off_the_table(route: Route) -> None:
    schemes = [name for item in operation_of(route)["security"] for name in item]
    assert schemes == ([] if route.open else ["organisation", "agent"] if route.takes_token else ["organisation"])


def test_a_decision_takes_a_key_or_a_token_and_a_registration_a_key_alone() -> None:
    assert security_of(NAMED["verify"]) == [{"organisation": []}, {"agent": []}]
    assert security_of(NAMED["register_agent"]) == [{"organisation": []}]
    assert security_of(NAMED["health"]) == []


def test_every_code_is_in_the_closed_set_with_what_it_means() -> None:
    codes = DOCUMENT["components"]["schemas"]["ErrorCode"]
    assert codes["enum"] == list(dict.fromkeys(row.code for row in ErrorCode))
    assert all(row.meaning in codes["x-enum-descriptions"][row.code] for row in ErrorCode)
    assert DOCUMENT["components"]["schemas"]["Problem"]["properties"]["code"]["$ref"].endswith("/ErrorCode")


def test_an_answer_with_an_unknown_code_does_not_fit_the_document() -> None:
    body = {"code": "QWED-NEW-001", "message": "", "details": {}, "final": True}
    assert schema_errors({"$ref": "#/components/schemas/Problem"}, body) != []
    assert schema_errors({"$ref": "#/components/schemas/Problem"}, body | {"code": "QWED-REQ-001"}) == []


@every_example()
def test_the_answer_of_an_example_fits_the_document(name: str, example: Example) -> None:
    answer = operation_of(NAMED[name])["responses"][str(example.status)]
    content = answer.get("content", {}).get("application/json")
    if content is None:
        assert example.answer is None
    elif not example.excerpt:
        assert schema_errors(content["schema"], example.answer) == []
        assert content["examples"][example.name]["value"] == example.answer


@every_example()
def test_the_body_of_an_example_that_succeeds_fits_the_document(name: str, example: Example) -> None:
    operation = operation_of(NAMED[name])
    if example.body is msgspec.UNSET:
        assert "requestBody" not in operation
        return
    content = operation["requestBody"]["content"]["application/json"]
    assert content["examples"][example.name]["value"] == example.body
    if example.status < 400:
        assert schema_errors(content["schema"], example.body) == []


@every_example()
def test_an_example_gives_every_parameter_of_the_path_and_none_that_is_unknown(name: str, example: Example) -> None:
    parameters = operation_of(NAMED[name])["parameters"]
    assert set(example.path) == {item["name"] for item in parameters if item["in"] == "path"}
    assert set(example.query) <= {item["name"] for item in parameters if item["in"] == "query"}
    assert set(example.headers) <= {item["name"] for item in parameters if item["in"] == "header"}


@every_example()
def test_the_parameters_of_an_example_that_succeeds_fit_the_document(name: str, example: Example) -> None:
    if example.status >= 400:
        return
    for parameters in operation_of(NAMED[name])["parameters"]:
        value = {**example.path, **example.query, **example.headers}.get(parameters["name"])
        if value is not None:
            whole = parameters["schema"].get("type") == "integer"
            assert schema_errors(parameters["schema"], int(value) if whole else value) == []


def test_an_example_prints_no_key_that_opens_anything() -> None:
    printed = msgspec.json.encode(EXAMPLES).decode()
    assert re.findall(r"qwed_(?:live|agent)_(?!example_\d|\.\.\.)\w+", printed) == []
    assert re.findall(r"\beyJ[\w-]+\.[\w-]+\.[\w-]{20,}", printed) == []
