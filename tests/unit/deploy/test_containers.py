"""The image and the compose file."""

import json
import re
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import psycopg

from qwed.settings import settings_from
from qwed.store.postgres.schema import migrate
from tests.docs.pages import ROOT
from tests.support.postgres_server import Postgres
from tests.support.server import Server
from tests.support.webhook_receivers import unused_port
from tests.unit.deploy.deploy_files import (
    DEPLOY,
    DURATION,
    TEXT,
    TEXTS,
    TRUTH,
    WHOLE,
    WORDS,
    dockerfile,
    document,
    mapped,
    record,
    several,
)

INSTRUCTIONS = frozenset(
    ("FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT")
) | {"CMD"}
PINNED = re.compile(r"[a-z]+:\d+\.\d+(\.\d+)?(-[a-z0-9]+)*|qwed:local")


def instructions(name: str) -> list[str]:
    return [rest for instruction, rest in dockerfile() if instruction == name]


def compose() -> Any:
    return document("compose.yaml")


def test_the_image_is_built_in_stages_from_one_pinned_base_and_runs_as_nobody() -> None:
    assert {name for name, _ in dockerfile()} <= INSTRUCTIONS
    build, final = instructions("FROM")
    assert build == f"{final} AS build"
    assert PINNED.fullmatch(final)
    assert final.startswith("python:3.11.")
    assert instructions("USER") == ["10001:10001"]
    last = max(number for number, (name, _) in enumerate(dockerfile()) if name in ("RUN", "COPY"))
    assert [name for name, _ in dockerfile()].index("USER") > last
    assert instructions("VOLUME") == ['["/data"]']
    assert [json.loads(item) for item in (*instructions("ENTRYPOINT"), *instructions("CMD"))] == [["qwed"], ["serve"]]


def test_what_is_installed_is_pinned_and_there_is_such_an_extra() -> None:
    installs = [part for run in instructions("RUN") for part in run.split("&&") if "pip install" in part]
    assert len(installs) == 2
    assert all("-c constraints.txt" in part for part in installs)
    match = re.search(r'"\.\[([a-z,]+)\]"', installs[1])
    assert match is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"server", "postgres", "redis", "otel"} <= set(match[1].split(",")) <= set(project["optional-dependencies"])


def test_what_is_copied_is_there_and_nothing_else_goes_into_the_image() -> None:
    copied = {name for copy in instructions("COPY") if not copy.startswith("--from") for name in copy.split()[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied
    assert {"**/*.key", "**/*.jwks", "**/*.db"} <= set(lines)


def checks() -> list[list[str]]:
    [health] = instructions("HEALTHCHECK")
    words: list[str] = json.loads(health.partition("CMD ")[2])
    kind, *ready = compose()["services"]["qwed"]["healthcheck"]["test"]
    assert kind == "CMD"
    return [words, ready]


def run_check(check: list[str], url: str) -> int:
    python, *rest = check
    assert python == "python"
    command = [sys.executable, *(word.replace("http://127.0.0.1:8000", url) for word in rest)]
    return subprocess.run(command, capture_output=True, timeout=30).returncode


def test_the_health_checks_see_a_server_that_answers_and_one_that_does_not(server: Server, api: httpx.Client) -> None:
    alive, ready = checks()
    assert run_check(alive, server.base_url) == 0
    # Ready once every worker has started.
    while not api.get("/ready").json().get("ready"):
        assert api.post("/verify/math", json={"expression": "x + x = 2*x"}).status_code == 200
    assert run_check(ready, server.base_url) == 0
    assert [run_check(check, f"http://127.0.0.1:{unused_port()}") for check in (alive, ready)] == [1, 1]


HEALTH = record(
    "test interval timeout retries",
    test=TEXTS,
    interval=DURATION,
    timeout=DURATION,
    retries=WHOLE,
    start_period=DURATION,
)
SERVICE = record(
    "image healthcheck restart security_opt networks",
    image=TEXT,
    build=record("context dockerfile", context=TEXT, dockerfile=TEXT),
    command=TEXTS,
    environment=WORDS,
    secrets=several({"anyOf": [TEXT, record("source target", source=TEXT, target=TEXT)]}),
    volumes=TEXTS,
    ports=TEXTS,
    networks=TEXTS,
    depends_on=mapped(record("condition", condition={"const": "service_healthy"})),
    healthcheck=HEALTH,
    restart={"enum": ["always", "on-failure", "unless-stopped"]},
    stop_grace_period=DURATION,
    init=TRUTH,
    read_only=TRUTH,
    tmpfs=TEXTS,
    cap_drop=TEXTS,
    security_opt={"type": "array", "contains": {"const": "no-new-privileges:true"}},
    ulimits=mapped(WHOLE),
    shm_size=TEXT,
)
COMPOSE = record(
    "services secrets volumes networks",
    name=TEXT,
    services=mapped(SERVICE),
    networks=mapped(record(internal=TRUTH)),
    volumes=mapped(record()),
    secrets=mapped(record("file", file={"type": "string", "pattern": r"^\./secrets/"})),
)


def _secrets_of(service: dict[str, Any]) -> set[str]:
    """Return the secrets of a service, in whatever form it lists them."""
    return {item if isinstance(item, str) else item["source"] for item in service.get("secrets", ())}


def test_the_compose_file_is_one_and_names_only_what_it_has() -> None:
    parsed = compose()
    jsonschema.validate(parsed, COMPOSE)
    for service in parsed["services"].values():
        assert PINNED.fullmatch(service["image"])
        assert _secrets_of(service) <= set(parsed["secrets"])
        assert set(service["networks"]) <= set(parsed["networks"])
        assert set(service.get("depends_on", ())) <= set(parsed["services"])
        assert {volume.split(":")[0] for volume in service.get("volumes", ())} <= set(parsed["volumes"])
    build = parsed["services"]["qwed"]["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).exists()


def test_only_this_machine_can_connect_and_the_stores_have_no_outside_network() -> None:
    services = compose()["services"]
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "qwed": ["127.0.0.1:8000:8000"]
    }
    assert compose()["networks"]["inside"] == {"internal": True}
    assert all(services[name]["networks"] == ["inside"] for name in ("postgres", "redis"))
    assert services["qwed"]["cap_drop"] == ["ALL"]
    assert services["qwed"]["read_only"] is True


def test_a_variable_that_names_a_secret_names_one_the_service_has() -> None:
    for service in compose()["services"].values():
        named = {name: value for name, value in service.get("environment", {}).items() if name.endswith("_FILE")}
        assert {value.removeprefix("/run/secrets/") for value in named.values()} <= _secrets_of(service)
        passwords = [name for name in service.get("environment", {}) if "PASSWORD" in name or "URL" in name]
        assert all(name.endswith("_FILE") for name in passwords)


def make_secrets(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(DEPLOY / "make_secrets.py"), str(place)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_secrets_that_are_made_are_those_it_wants_and_settings_read_them(tmp_path: Path) -> None:
    place = tmp_path / "secrets"
    assert make_secrets(place).returncode == 0
    wanted = {Path(secret["file"]).name for secret in compose()["secrets"].values()}
    assert {file.name for file in place.iterdir()} == wanted
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    named = compose()["services"]["qwed"]["environment"]
    read = settings_from({name: value.replace("/run/secrets", str(place)) for name, value in named.items()})
    password = read.database_url.removeprefix("postgresql://qwed:").removesuffix("@postgres:5432/qwed")
    assert f"PASSWORD '{password}'" in (place / "postgres-roles.sql").read_text()
    assert (place / "postgres-password").read_text().strip() != password
    assert f"requirepass {read.redis_url.split(':')[2].split('@')[0]}\n" in (place / "redis.conf").read_text()
    assert len(password) > 40


def test_the_servers_own_their_database_and_are_no_superuser(tmp_path: Path) -> None:
    make_secrets(tmp_path / "secrets")
    with Postgres() as postgres:
        for statement in (tmp_path / "secrets" / "postgres-roles.sql").read_text().splitlines():
            postgres.say(statement)
        with psycopg.connect(postgres.url("qwed"), user="qwed", autocommit=True) as connection:
            migrate(connection)
            rights = "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles WHERE rolname = 'qwed'"
            assert connection.execute(rights).fetchone() == (False, False, False, False)


def test_secrets_whose_making_was_cut_short_are_made_anew(tmp_path: Path) -> None:
    place = tmp_path / "secrets"
    half = tmp_path / "secrets.new"
    half.mkdir()
    (half / "redis.conf").write_text("half of it")
    assert make_secrets(place).returncode == 0
    assert "half" not in (place / "redis.conf").read_text()
    assert [item.name for item in tmp_path.iterdir()] == ["secrets"]


def test_secrets_are_made_once(tmp_path: Path) -> None:
    place = tmp_path / "secrets"
    make_secrets(place)
    before = {file.name: file.read_text() for file in place.iterdir()}
    again = make_secrets(place)
    assert again.returncode == 1
    assert "has secrets already" in again.stderr
    assert {file.name: file.read_text() for file in place.iterdir()} == before
