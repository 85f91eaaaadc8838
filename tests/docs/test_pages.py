"""Every code block of the README and of docs/ is run, and prints what the page says it prints."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.docs.pages import (
    ANY_PORT_URL,
    NOT_LISTED,
    PAGES,
    PRINTED_DATABASE,
    PRINTED_URL,
    ROOT,
    UNREACHABLE_URL,
    blocks_of,
    environment,
    is_verbs,
    require_shown,
    run_bash,
    run_python,
    runs_here,
    serve_arguments,
)
from tests.support.agent_names import EARLIER, release_name
from tests.support.postgres_server import Postgres
from tests.support.server import SERVE, Server

LANGUAGES = {"python", "bash", "text", "json", "mermaid", ""}
CHANGES_POLICIES = re.compile(r"client\.apply_policies|qwed policy (apply|rollback)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
each_page_run_here = pytest.mark.parametrize("page", [*filter(runs_here, PAGES)], ids=lambda page: page.name)


@pytest.fixture
def page_server(page: Path, server: Server, tmp_path: Path) -> Iterator[Server]:
    """The server under test, or one of its own for a page that changes policies: versions count from 1."""
    if not CHANGES_POLICIES.search(page.read_text()):
        yield server
        return
    running = Server(tmp_path / "server-data")
    yield running
    assert running.stop() == 0


@pytest.fixture
def place(tmp_path: Path, page_server: Server, api: httpx.Client) -> Path:
    """An empty directory in which `data` is the data directory of the server under test; no agent has a page's name."""
    for agent in api.get("/agents", params={"limit": 1000}).json()["agents"]:
        if not agent["name"].startswith(EARLIER):
            release_name(api, agent["agent_id"])
    directory = tmp_path / "page"
    directory.mkdir()
    (directory / "data").symlink_to(page_server.data_dir)
    return directory


@each_page_run_here
def test_the_python_of_a_page_is_one_program_that_prints_what_the_page_shows(
    page: Path, place: Path, page_server: Server
) -> None:
    blocks = [block for block in blocks_of(page) if block.language == "python"]
    for block, printed in zip(blocks, run_python(blocks, place, page_server.base_url), strict=True):
        require_shown(block, printed, page_server.base_url)


@pytest.fixture
def databases(page: Path) -> Iterator[Postgres | None]:
    """A PostgreSQL of its own for a page that prints the address of one."""
    if any(PRINTED_DATABASE.search(block.text) for block in blocks_of(page) if block.language == "bash"):
        with Postgres(durable=False) as started:
            yield started
    else:
        yield None


@each_page_run_here
def test_the_commands_of_a_page_run_in_one_shell_and_print_what_the_page_shows(
    page: Path, place: Path, page_server: Server, databases: Postgres | None
) -> None:
    blocks = [block for block in blocks_of(page) if block.language == "bash"]
    blocks = [block for block in blocks if not is_verbs(block) and serve_arguments(block) is None]
    for block, printed in zip(blocks, run_bash(blocks, place, page_server.base_url, databases), strict=True):
        require_shown(block, printed, page_server.base_url)


@each_page
def test_the_make_verbs_of_a_page_exist(page: Path) -> None:
    for block in (block for block in blocks_of(page) if block.language == "bash" and is_verbs(block)):
        for line in block.text.splitlines():
            command = ["make", "-n", *line.split("#")[0].split()[1:]]
            done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr


@each_page
def test_a_server_starts_with_the_arguments_a_page_shows(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(blocks_of(page)):
        arguments = serve_arguments(block)
        if arguments is None:
            continue
        # A free port and a separate directory: the later argument overrides the earlier one.
        started = Server(tmp_path / str(number), (*SERVE[:-3], *arguments, "--port", "0"))
        try:
            answer = httpx.get(f"{started.base_url}/agents", headers={"X-API-Key": started.owner_key}, timeout=30)
        finally:
            code = started.stop()
        assert (answer.status_code, answer.json()["agents"], code) == (200, [], 0)


@each_page
def test_every_block_of_a_page_is_of_a_kind_that_is_tested(page: Path) -> None:
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"line {block.line}"
        assert block.language not in ("text", "json"), f"line {block.line}: an output without the block that prints it"


@each_page
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_of_docs_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    reached = {target for target in LINK.findall(index.read_text()) if target.endswith(".md")}
    assert {page.name for page in index.parent.glob("*.md")} - {"index.md"} - NOT_LISTED <= reached


def test_only_the_printed_address_is_replaced_so_pages_print_no_other() -> None:
    address = re.compile(r"https?://(?:localhost|127\.0\.0\.1)(?::\w+)?")
    for page in PAGES:
        assert set(address.findall(page.read_text())) <= {PRINTED_URL, UNREACHABLE_URL, ANY_PORT_URL}, page.name
