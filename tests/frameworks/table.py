"""The table of docs/frameworks.md, made by playing each scene: `python -m tests.frameworks.table` writes it."""

import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from qwed_sdk import QWEDAgentClient, QWEDClient
from tests.frameworks.scene import Scene, ToolCalls, scenes_here
from tests.support.server import Server

PAGE = Path(__file__).resolve().parents[2] / "docs" / "frameworks.md"
BEGIN = "<!-- frameworks: begin -->"
END = "<!-- frameworks: end -->"
HEADER = (
    "| Framework | Version | Hook | Permitted tool runs | Denied tool not run | Verifier down: nothing runs |",
    "|---|---|---|---|---|---|",
)
PERMITTED: ToolCalls = [("search_web", {"query": "weather"})]
DENIED: ToolCalls = [("delete_database", {"name": "prod"})]


class Seen(NamedTuple):
    """What a scene showed."""

    permitted: bool
    denied: bool
    down: bool


def play(scene: Scene, server: Server) -> Seen:
    """Play the scene three times: with a tool that may run, with one that may not, and with no server to ask."""
    client = QWEDClient(server.owner_key, server.base_url)
    agent = QWEDAgentClient.register(name=scene.name, principal_id="user_123", client=client)
    permitted = scene.run(agent, PERMITTED)
    agent.new_conversation()
    denied = scene.run(agent, DENIED)
    with nobody_at() as url:
        unreachable = QWEDAgentClient(agent.agent_id, agent.agent_token, base_url=url)
        down = scene.run(unreachable, PERMITTED)
    return Seen(
        permitted.ran == PERMITTED,
        denied.ran == [] and "QWED-" in denied.said,
        down.ran == [] and "could not be asked" in down.said,
    )


@contextmanager
def nobody_at() -> Iterator[str]:
    """An address at which nobody answers: bound and never listening, so that nobody else gets the port meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def row(scene: Scene, seen: Seen) -> str:
    """The scene's line."""
    told = ("yes" if each else "**no**" for each in seen)
    return f"| {scene.name} | {scene.version} | {scene.hook} | {' | '.join(told)} |"


def rows_on_page() -> dict[str, str]:
    """The lines of the page, by framework and hook."""
    return {name_of(line): line for line in _table().splitlines() if line.startswith("| ") and line not in HEADER}


def name_of(line: str) -> str:
    """What tells one line from another: the framework and its hook."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return f"{cells[0]}: {cells[2]}"


def _table() -> str:
    found = re.search(f"{BEGIN}\n(.*?){END}", PAGE.read_text(), re.DOTALL)
    assert found is not None, f"{PAGE.name} has no place for the table"
    return found[1]


def main() -> None:
    """Write the lines of the scenes that can be played here; the others stay as they are."""
    rows = rows_on_page()
    with tempfile.TemporaryDirectory() as place:
        server = Server(Path(place) / "data")
        try:
            for scene in scenes_here():
                line = row(scene, play(scene, server))
                rows[name_of(line)] = line
                print(line, file=sys.stderr)
        finally:
            server.stop()
    table = "\n".join([*HEADER, *sorted(rows.values(), key=str.lower)])
    PAGE.write_text(PAGE.read_text().replace(_table(), f"{table}\n"))


if __name__ == "__main__":
    main()
