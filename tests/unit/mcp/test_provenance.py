"""Skill manifest of a server: an ambiguous or unreadable file is blocked (seed 004)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwed_mcp.security import SkillProvenanceGuard
from qwed_mcp.security.provenance import MAX_MANIFEST_BYTES, check_manifest_file
from tests.support.case_tables import rows

SEED = rows("skill_honest.jsonl")[0]["manifest"]


def written(place: Path, data: bytes) -> Path:
    file = place / "skill-manifest.json"
    file.write_bytes(data)
    return file


def test_a_manifest_in_a_file_is_judged_as_the_manifest_itself(tmp_path: Path) -> None:
    for manifest in (SEED, {**SEED, "registry": "moltbot.io"}, {**SEED, "download_count": 3}):
        file = written(tmp_path, json.dumps(manifest).encode())
        assert check_manifest_file(file) == check_manifest_file(str(file))
        assert check_manifest_file(file) == SkillProvenanceGuard().verify_skill(manifest)


def test_the_guard_that_is_given_decides(tmp_path: Path) -> None:
    file = written(tmp_path, json.dumps({**SEED, "registry": "skills.example.org"}).encode())
    assert check_manifest_file(file).verified
    assert not check_manifest_file(file, SkillProvenanceGuard(trusted_registries={"github.com"})).verified


UNREADABLE = {
    "nothing": (b"", "is not valid JSON"),
    "half": (b'{"name": "a"', "is not valid JSON"),
    "two values": (b"{} {}", "is not valid JSON"),
    "a comment": (b"{} // trust me", "is not valid JSON"),
    "a member twice": (b'{"registry": "moltbot.io", "registry": "github.com"}', "`registry` occurs twice"),
    "a member twice, deep inside": (b'{"a": [{"b": 1, "b": 2}]}', "`b` occurs twice"),
    "a member twice, spelt in two ways": (b'{"name": 1, "n\\u0061me": 2}', "`name` occurs twice"),
    "no number": (b'{"download_count": NaN}', "NaN is not a JSON number"),
    "no end": (b'{"download_count": -Infinity}', "-Infinity is not a JSON number"),
    "too many digits": (b'{"download_count": 1' + b"0" * 5_000 + b"}", "is not valid JSON"),
    "other bytes": (b'{"name": "\xff"}', "is not valid UTF-8"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "is not valid JSON"),
    "utf-16": ('{"name": "a"}'.encode("utf-16"), "is not valid UTF-8"),
    "too deep": (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "too large": (b'{"name": "' + b"a" * MAX_MANIFEST_BYTES + b'"}', f"larger than {MAX_MANIFEST_BYTES} bytes"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_in_one_way_is_blocked(case: str, tmp_path: Path) -> None:
    data, says = UNREADABLE[case]
    verdict = check_manifest_file(written(tmp_path, data))
    assert (verdict.verified, verdict.status, verdict.risk_level) == (False, "BLOCKED", "high")
    assert says in verdict.findings[0]
    assert "`skill-manifest.json` cannot be read" in verdict.message
    assert verdict.message.isprintable()


@pytest.mark.parametrize("data", [b"[]", b"3", b'"skill"', b"null", b"true"])
def test_json_that_is_no_manifest_is_blocked(data: bytes, tmp_path: Path) -> None:
    assert check_manifest_file(written(tmp_path, data)).findings == ["the manifest is not an object of fields"]


def test_a_file_that_cannot_be_opened_is_blocked(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    reasons = {
        "nothing here": "no such file or directory",
        "pipe": "it is not a regular file",
        "loop": "too many levels of symbolic links",
        "a\0b": "null byte",
        "a" * 300: "file name too long",
        "\udcff": "no such file or directory",
        ".": "is a directory",
    }
    for name, says in reasons.items():
        verdict = check_manifest_file(tmp_path / name)
        assert (verdict.status, verdict.risk_level) == ("BLOCKED", "high"), name
        assert says in verdict.findings[0]
        assert verdict.message.isprintable()
    assert "it is not a regular file" in check_manifest_file("/dev/zero").message


def test_many_members_are_looked_through_once(tmp_path: Path) -> None:
    members = ",".join(f'"{number:x}":1' for number in range(90_000))
    assert "`15f8f` occurs twice" in check_manifest_file(written(tmp_path, f'{{{members},"15f8f":1}}'.encode())).message


def test_the_guard_is_there_without_the_protocol_and_without_an_engine() -> None:
    program = "import sys; from qwed_mcp.security import SkillProvenanceGuard; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & {"mcp", "mcp_types", "sympy", "z3", "sqlglot", "httpx", "starlette", "typer"} == set()
