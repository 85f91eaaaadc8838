"""Commands `qwed-mcp skill` and `qwed-mcp aibom`."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from qwed_mcp import main
from qwed_mcp.security import skill_content
from qwed_mcp.security.skill_content import SkillContentError, read_skill_content
from tests.support.case_tables import rows

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
    assert main.main(["skill", manifest(tmp_path)]) == 0
    assert capsys.readouterr().out == "TRUSTED (risk none): skill `my-skill` passed every check\n"
    assert main.main(["skill", manifest(tmp_path, registry="moltbot.io", download_count=3)]) == 1
    verdict, *findings = capsys.readouterr().out.splitlines()
    assert verdict.startswith("BLOCKED (risk high): skill `my-skill` is blocked: registry `moltbot.io`")
    assert len(findings) == 2


def test_a_program_gets_one_json_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["skill", "--json", manifest(tmp_path, download_count=3)]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["verified"], verdict["status"], verdict["risk_level"]) == (False, "BLOCKED", "medium")


def test_what_a_terminal_would_obey_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["skill", manifest(tmp_path, name="\x1b[2J", registry="\x1b]0;x\x07.com")]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_a_manifest_that_is_not_there_is_blocked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["skill", str(tmp_path / "none.json")]) == 1
    assert "no such file" in capsys.readouterr().out


def test_the_registries_that_are_named_are_the_only_ones(tmp_path: Path) -> None:
    assert main.main(["skill", manifest(tmp_path), "--registry", "github.com"]) == 0
    assert main.main(["skill", manifest(tmp_path), "--registry", "skills.example.org"]) == 1


def test_the_content_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skill = tmp_path / "skill.zip"
    skill.write_bytes(b"skill")
    file = manifest(tmp_path, digest=digest(b"skill"))
    assert main.main(["skill", file, "--content", str(skill)]) == 0
    skill.write_bytes(b"other")
    assert main.main(["skill", file, "--content", str(skill)]) == 1
    assert "the content does not match" in capsys.readouterr().out


def test_content_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main.main(["skill", manifest(tmp_path), "--content", str(tmp_path / "none")])
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
    assert read_skill_content(place) == printed
    assert main.main(["skill", manifest(tmp_path, digest=digest(printed)), "--content", str(place)]) == 0
    (place / "src" / "b.py").touch()
    assert main.main(["skill", manifest(tmp_path, digest=digest(printed)), "--content", str(place)]) == 1


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
        with pytest.raises(SkillContentError):
            read_skill_content(place)
        (place / name).unlink()
    assert read_skill_content(place)
    monkeypatch.setattr(skill_content, "MAX_FILES", 3)
    with pytest.raises(SkillContentError, match="more than 3 files"):
        read_skill_content(place)


def test_a_skill_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tree(tmp_path)
    monkeypatch.setattr(skill_content, "MAX_BYTES", 1_000_000)
    for large in (place, place / "B"):
        with pytest.raises(SkillContentError, match="larger than 1000000 bytes"):
            read_skill_content(large)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SkillContentError, match="not a regular file"):
        read_skill_content(tmp_path / "pipe")


def test_the_bill_of_a_run_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["aibom", "--model", "gpt-4o", "--engine", "math", "--engine", "sql", "--tool", "execute_python_code"]
    assert main.main(arguments) == 0
    bill = json.loads(capsys.readouterr().out)
    assert [engine["name"] for engine in bill["components"]["verification_engines"]] == ["math", "sql"]
    assert main.main([*arguments, "--format", "cyclonedx", "--spec-version", "1.7", "--reproducible"]) == 0
    bom = json.loads(capsys.readouterr().out)
    assert (bom["specVersion"], "timestamp" in bom["metadata"]) == ("1.7", False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model", ""],
        ["--model", "gpt-4o", "--tool", "a\x1b[2J"],
        ["--model", "gpt-4o", "--format", "cyclonedx", "--spec-version", "9"],
        ["--model", "gpt-4o", "--format", "spdx"],
        [],
    ],
)
def test_a_bill_that_cannot_be_made_is_said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main.main(["aibom", *arguments])
    output = capsys.readouterr()
    assert (end.value.code, output.out) == (2, "")
    assert output.err.startswith("qwed-mcp: ")
    assert "\x1b" not in output.err
