"""The MCP document, AIBOMGenerator and SkillProvenanceGuard: the printed scripts, and every row of the tables."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from qwed_mcp.observability.aibom import AIBOMGenerator
from tests.seeds.blocks import block
from tests.spec.sections import spec

PRINTED = {
    "models": [{"name": "gpt-4o", "type": "generator"}],
    "verification_engines": [
        {"name": "qwed_tax.TaxVerifier", "type": "qwed_deterministic"},
        {"name": "qwed_legal.FairnessGuard", "type": "qwed_deterministic"},
    ],
    "mcp_tools": [{"name": "execute_python_code", "type": "action_execution"}],
}


def run(name: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(block(name), name, "exec"), names)
    return names


@spec("7.3")
def test_the_manifest_of_the_document_is_printed_as_it_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    bom = run("mcp_aibom")["bom"]
    compliance, manifest_hash, components = capsys.readouterr().out.splitlines()
    assert compliance == "QWED_AI_SPM_v1"
    assert re.fullmatch("[0-9a-f]{64}", manifest_hash)
    assert components == str(PRINTED)
    assert set(bom) == {"timestamp", "components", "compliance", "manifest_hash"}
    assert json.loads(json.dumps(bom)) == json.loads(str(bom)) == bom


@spec("7.3")
def test_a_manifest_is_dated_in_utc() -> None:
    timestamp = AIBOMGenerator().generate_manifest("gpt-4o")["timestamp"]
    assert timestamp.endswith("Z")
    assert abs(datetime.fromisoformat(timestamp) - datetime.now(UTC)) < timedelta(minutes=1)


@spec("7.3")
def test_a_model_is_required_and_nothing_else() -> None:
    with pytest.raises(TypeError, match="llm_model"):
        AIBOMGenerator().generate_manifest()  # type: ignore[call-arg]
    components = AIBOMGenerator().generate_manifest(llm_model="claude-3-opus")["components"]
    assert components == {
        "models": [{"name": "claude-3-opus", "type": "generator"}],
        "verification_engines": [],
        "mcp_tools": [],
    }


@spec("7.3")
def test_the_hash_leaves_out_the_time_and_can_be_computed_by_anybody() -> None:
    first, again = (
        AIBOMGenerator().generate_manifest("gpt-4o", ["b.Engine", "a.Engine"], ["execute_python_code"])
        for _ in range(2)
    )
    assert first["manifest_hash"] == again["manifest_hash"]
    hashed = {name: value for name, value in first.items() if name not in ("timestamp", "manifest_hash")}
    hashed["components"] = {
        kind: sorted(each, key=lambda one: one["name"]) for kind, each in hashed["components"].items()
    }
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert first["manifest_hash"] == hashlib.sha256(text.encode()).hexdigest()


@spec("7.3")
def test_the_same_components_have_the_same_hash_and_others_have_another() -> None:
    def hashed(*arguments: Any) -> str:
        return str(AIBOMGenerator().generate_manifest(*arguments)["manifest_hash"])

    first = hashed("gpt-4o", ["a", "b"], ["c"])
    assert hashed("gpt-4o", ["b", "a", "a"], ("c",)) == first
    others = [
        ("gpt-4", ["a", "b"], ["c"]),
        ("gpt-4o", ["a"], ["b", "c"]),
        ("gpt-4o", ["a", "b"]),
        ("gpt-4o", ["ab"], ["c"]),
    ]
    assert len({first, *(hashed(*each) for each in others)}) == 5


@spec("9.7")
def test_the_skill_of_the_document_is_trusted_under_its_published_name(capsys: pytest.CaptureFixture[str]) -> None:
    run("mcp_skill")
    assert capsys.readouterr().out.splitlines() == ["True", "TRUSTED", "none"]
