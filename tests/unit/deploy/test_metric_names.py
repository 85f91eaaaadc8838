"""Names in deploy/ exist: settings, command options and files; and no file contains a secret."""

import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from qwed.settings import Settings, unknown_variables, variable_of
from tests.docs.pages import ROOT
from tests.unit.deploy.deploy_files import DEPLOY, FILES

VARIABLE = re.compile(r"\bQWED_[A-Z0-9_]+\b")
COMMAND = re.compile(r'(?:\bqwed"?\s+|command: \[|args: \[|CMD \[)"?serve"?(?P<rest>[^\]\n]*)')

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


@cache
def options_of_serve() -> frozenset[str]:
    done = subprocess.run(
        [sys.executable, "-m", "qwed.cli", "serve", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    return frozenset(re.findall(r"--[a-z-]+", done.stdout))


@each_file
def test_every_setting_that_is_named_is_one(file: Path) -> None:
    named = VARIABLE.findall(file.read_text())
    assert unknown_variables(dict.fromkeys(named, "x")) == []


def test_settings_are_named_at_all() -> None:
    named = {name for file in FILES for name in VARIABLE.findall(file.read_text())}
    assert {"QWED_DATABASE_URL_FILE", "QWED_REDIS_URL_FILE", "QWED_DATA_DIR", "QWED_SIGNING_KEY_FILE"} <= named
    assert named & {variable_of(item.name) for item in fields(Settings)}


def test_every_option_that_is_given_is_one() -> None:
    options = [
        option
        for file in FILES
        for match in COMMAND.finditer(file.read_text())
        for option in re.findall(r"--[a-z-]+", match["rest"])
    ]
    assert "--workers" in options
    assert set(options) <= options_of_serve()


def test_every_file_that_is_named_is_there() -> None:
    named = {name for file in FILES for name in re.findall(r"\b(?:deploy|docs)/[\w./-]+\w", file.read_text())}
    assert {name for name in named if not (ROOT / name).exists()} <= {"deploy/secrets"}
    assert len(named) > 3


@each_file
def test_no_file_names_a_registry_or_holds_a_secret(file: Path) -> None:
    text = file.read_text()
    assert not re.search(r"pypi|index-url|trusted-host|docker\.io|gcr\.io|ghcr|quay", text)
    assert not re.search(r"qwed_live_|qwed_agent_|BEGIN [A-Z ]*PRIVATE|:latest\b", text)


def test_secrets_that_are_made_are_not_kept_in_the_repository() -> None:
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert DEPLOY.is_dir()
