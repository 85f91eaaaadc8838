"""AIBOM manifest: only readable names are accepted."""

import subprocess
import sys
from typing import Any

import pytest

from qwed.model.clock import Clock
from qwed_mcp.observability.aibom import AIBOMGenerator, Manifest, hash_of


def make_manifest(**arguments: Any) -> Manifest:
    return AIBOMGenerator(Clock(now=lambda: 0.0)).generate_manifest(**{"llm_model": "gpt-4o", **arguments})


@pytest.mark.parametrize("name", [None, 3, b"gpt-4o", ["gpt-4o"], {"name": "gpt-4o"}, True])
def test_a_model_that_is_no_text_is_said_to_be_none(name: Any) -> None:
    with pytest.raises(TypeError, match=f"^llm_model: a name is text, not a `{type(name).__name__}`$"):
        make_manifest(llm_model=name)


@pytest.mark.parametrize(
    "name", ["", " ", " gpt-4o", "a\nb", "\u3164", "gpt\u200b-4o", "\u202egpt", "\ud800", "a\x1b[2J"]
)
def test_a_name_that_nobody_can_read_is_refused(name: str) -> None:
    for arguments in ({"llm_model": name}, {"qwed_engines_used": ["math", name]}, {"mcp_tools_used": [name]}):
        with pytest.raises(ValueError, match="cannot be read as a name") as error:
            make_manifest(**arguments)
        assert str(error.value).isprintable()


@pytest.mark.parametrize("names", ["math", b"math", 3, {"math": 1}, iter(["math"])])
def test_one_name_is_no_list_of_names(names: Any) -> None:
    with pytest.raises(TypeError, match="qwed_engines_used takes a list of names"):
        make_manifest(qwed_engines_used=names)


def test_too_much_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1000 fit"):
        make_manifest(mcp_tools_used=["a"] * 1_001)
    with pytest.raises(ValueError, match="at most 256 characters"):
        make_manifest(mcp_tools_used=["a" * 257])


def test_a_set_has_an_order_and_a_name_is_listed_once() -> None:
    assert make_manifest(mcp_tools_used={"b", "a"})["components"]["mcp_tools"] == [
        {"name": "a", "type": "action_execution"},
        {"name": "b", "type": "action_execution"},
    ]
    assert [
        component["name"]
        for component in make_manifest(qwed_engines_used=("b", "a", "b")).components["verification_engines"]
    ] == [
        "b",
        "a",
    ]


def test_members_read_both_ways_and_what_is_not_there_is_said() -> None:
    manifest = make_manifest()
    assert manifest.timestamp == manifest["timestamp"] == "1970-01-01T00:00:00Z"
    assert hash_of(manifest) == manifest.manifest_hash
    with pytest.raises(AttributeError, match="this manifest has timestamp, components, compliance, manifest_hash"):
        _ = manifest.license


def test_the_generator_is_there_without_the_protocol_and_without_an_engine() -> None:
    program = "import sys; from qwed_mcp.observability.aibom import AIBOMGenerator; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} & {"mcp", "sympy", "z3", "typer", "httpx"} == set()
