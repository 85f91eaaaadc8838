"""`qwed-mcp skill` and `qwed-mcp aibom`, called as somebody would call them."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from qwed_mcp import command
from qwed_mcp.security import content
from qwed_mcp.security.content import Unreadable, content_of
from tests.support.tables import rows

SEED = rows("skill_honest.jsonl")[0]["manifest"]


def manifest(place: Path, **fields: object) -> str:
    file = place / "manifest.json"
    file.write_text(json.dumps({**SEED, **fields}))
    return str(file)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_a_trusted_skill_ends_with_nought_and_a_blocked_one_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["skill", manifest(tmp_path)]) == 0
    assert capsys.readouterr().out == "TRUSTED (risk none): skill `my-skill` passed every check\n"
    assert command.main(["skill", manifest(tmp_path, registry="moltbot.io", download_count=3)]) == 1
    told, *findings = capsys.readouterr().out.splitlines()
    assert told.startswith("BLOCKED (risk high): skill `my-skill` is blocked: registry `moltbot.io`")
    assert len(findings) == 2


def test_a_program_gets_one_json_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["skill", "--json", manifest(tmp_path, download_count=3)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["verified"], told["status"], told["risk_level"]) == (False, "BLOCKED", "medium")


def test_what_a_terminal_would_obey_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["skill", manifest(tmp_path, name="\x1b[2J", registry="\x1b]0;x\x07.com")]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_a_manifest_that_is_not_there_is_blocked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["skill", str(tmp_path / "none.json")]) == 1
    assert "no such file" in capsys.readouterr().out


def test_the_registries_that_are_named_are_the_only_ones(tmp_path: Path) -> None:
    assert command.main(["skill", manifest(tmp_path), "--registry", "github.com"]) == 0
    assert command.main(["skill", manifest(tmp_path), "--registry", "skills.example.org"]) == 1


def test_the_content_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skill = tmp_path / "skill.zip"
    skill.write_bytes(b"skill")
    file = manifest(tmp_path, digest=digest(b"skill"))
    assert command.main(["skill", file, "--content", str(skill)]) == 0
    skill.write_bytes(b"other")
    assert command.main(["skill", file, "--content", str(skill)]) == 1
    assert "the content is not the one" in capsys.readouterr().out


def test_content_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["skill", manifest(tmp_path), "--content", str(tmp_path / "none")])
    assert (end.value.code, "the content cannot be read" in capsys.readouterr().err) == (2, True)


def tree(place: Path) -> Path:
    for name, data in {
        "SKILL.md": b"# skill",
        "src/a.py": b"a = 1\n",
        "src/a-b.py": b"",
        "B": b"x" * 3_000_000,
    }.items():
        file = place / "skill" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return place / "skill"


def test_the_content_of_a_directory_is_the_list_that_sha256sum_prints(tmp_path: Path) -> None:
    place = tree(tmp_path)
    listed = "find . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum"
    printed = subprocess.run(["sh", "-c", listed], cwd=place, capture_output=True, check=True).stdout
    assert content_of(place) == printed
    assert command.main(["skill", manifest(tmp_path, digest=digest(printed)), "--content", str(place)]) == 0
    (place / "src" / "b.py").touch()
    assert command.main(["skill", manifest(tmp_path, digest=digest(printed)), "--content", str(place)]) == 1


def test_a_directory_that_two_people_could_read_differently_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tree(tmp_path)
    for name, make in {
        "link": lambda file: file.symlink_to("/etc/hosts"),
        "folder": lambda file: file.symlink_to("/etc"),
        "pipe": os.mkfifo,
        "a\nb": Path.touch,
        "a\\b": Path.touch,
    }.items():
        make(place / name)
        with pytest.raises(Unreadable):
            content_of(place)
        (place / name).unlink()
    assert content_of(place)
    monkeypatch.setattr(content, "MOST_FILES", 3)
    with pytest.raises(Unreadable, match="more than 3 files"):
        content_of(place)


def test_a_skill_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tree(tmp_path)
    monkeypatch.setattr(content, "MOST_BYTES", 1_000_000)
    for large in (place, place / "B"):
        with pytest.raises(Unreadable, match="larger than 1000000 bytes"):
            content_of(large)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unreadable, match="no file"):
        content_of(tmp_path / "pipe")


def test_the_bill_of_a_run_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["aibom", "--model", "gpt-4o", "--engine", "math", "--engine", "sql", "--tool", "execute_python_code"]
    assert command.main(given) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in told["components"]["verification_engines"]] == ["math", "sql"]
    assert command.main([*given, "--format", "cyclonedx", "--spec-version", "1.7", "--reproducible"]) == 0
    bom = json.loads(capsys.readouterr().out)
    assert (bom["specVersion"], "timestamp" in bom["metadata"]) == ("1.7", False)


@pytest.mark.parametrize(
    "given",
    [
        ["--model", ""],
        ["--model", "gpt-4o", "--tool", "a\x1b[2J"],
        ["--model", "gpt-4o", "--format", "cyclonedx", "--spec-version", "9"],
        ["--model", "gpt-4o", "--format", "spdx"],
        [],
    ],
)
def test_a_bill_that_cannot_be_made_is_said(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["aibom", *given])
    told = capsys.readouterr()
    assert (end.value.code, told.out) == (2, "")
    assert told.err.startswith("qwed-mcp: ")
    assert "\x1b" not in told.err
