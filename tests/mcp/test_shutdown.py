"""A client that disconnects or cancels ends everything that runs for it."""

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import IO, Any

import anyio
import pytest
from mcp import Client

from qwed_mcp.sandbox import sandbox_from
from qwed_mcp.server import ServerOptions, build_server
from qwed_mcp.settings import McpSettings
from tests.support.child_processes import wait_for_children, wait_until_dead
from tests.support.mcp_sessions import COMMAND, TRUSTED, environment, session, text

LONG = "import time\ntime.sleep(1000)\n"
SETTINGS = McpSettings(trusted_code_execution=True, sandbox="none")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class RawServer:
    """Server on pipes, spoken to line by line."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**TRUSTED),
        )

    def send(self, method: str, params: dict[str, Any], number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": ENVELOPE}}
        self._pipe(self.process.stdin).write(
            json.dumps(message if number is None else {**message, "id": number}) + "\n"
        )
        self._pipe(self.process.stdin).flush()

    def call(self, number: int, tool: str, **arguments: Any) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments}, number)

    def answer(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._pipe(self.process.stdout).readline())
        return message

    def answer_text(self) -> str:
        content: str = self.answer()["result"]["content"][0]["text"]
        return content

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe

    def wait_for_children(self) -> list[int]:
        """Return pidfds of the descendants once a call was decided and they exist."""
        self._pipe(self.process.stderr).readline()
        return wait_for_children(self.process.pid)

    def close(self) -> int:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            self._pipe(pipe).close()
        return self.process.wait(timeout=30)


@pytest.fixture
def raw_server() -> Iterator[RawServer]:
    server = RawServer()
    yield server
    if server.process.poll() is None:
        server.process.kill()
    server.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[RawServer]:
    server = RawServer()
    yield server
    assert server.close() == 0


def test_a_request_that_is_cancelled_ends_its_run_and_the_next_is_answered(shared: RawServer) -> None:
    shared.call(1, "execute_python_code", code=LONG)
    below = shared.wait_for_children()
    shared.send("notifications/cancelled", {"requestId": 1})
    wait_until_dead(below)
    shared.call(2, "execute_python_code", code="print(2)")
    assert shared.answer()["id"] == 2


def test_a_background_job_is_cancelled_through_the_request_that_placed_it(shared: RawServer) -> None:
    shared.call(7, "execute_python_code", code=LONG, background=True)
    job_id = shared.answer()["result"]["structuredContent"]["job_id"]
    below = shared.wait_for_children()
    shared.send("notifications/cancelled", {"requestId": 7})
    wait_until_dead(below)
    for number in range(8, 5_000):
        shared.call(number, "verification_status", job_id=job_id)
        answer_text = shared.answer_text()
        if not answer_text.endswith("..."):
            break
    assert answer_text == "Status: cancelled\n\nResult:\nJob was cancelled."


@pytest.mark.parametrize("background", [False, pytest.param(True, marks=pytest.mark.drill)])
def test_a_closed_connection_ends_the_server_and_its_jobs(raw_server: RawServer, background: bool) -> None:
    raw_server.call(1, "execute_python_code", code=LONG, background=background)
    below = raw_server.wait_for_children()
    assert raw_server.close() == 0
    wait_until_dead(below)


@pytest.mark.drill
def test_a_server_that_is_asked_to_stop_ends_its_jobs(raw_server: RawServer) -> None:
    raw_server.call(1, "execute_python_code", code=LONG, background=True)
    raw_server.answer()
    below = raw_server.wait_for_children()
    raw_server.process.send_signal(signal.SIGTERM)
    assert raw_server.process.wait(timeout=30) == 128 + signal.SIGTERM
    wait_until_dead(below)


def test_nothing_but_the_protocol_is_on_standard_output(shared: RawServer) -> None:
    assert shared.process.stdin is not None
    shared.process.stdin.write("this is no message\n")
    shared.call(1, "execute_python_code", code="import sys\nprint('out')\nprint('err', file=sys.stderr)")
    assert shared.answer()["result"]["content"][0]["text"] == (
        "STDOUT:\nout\n\nSTDERR:\nerr\n\nExecution completed successfully."
    )


HOSTILE = [
    "[" * 100_000,
    '{"jsonrpc":"2.0","id":91,"method":"tools/call","params":{"name":"execute_python_code","arguments":'
    + '{"a":' * 50_000
    + "1"
    + "}" * 50_000
    + "}}",
    '{"jsonrpc":"2.0","id":92,"method":"tools/call","params":{"name":"\\ud800","arguments":{"code":"\\udfff"}}}',
    '{"jsonrpc":"2.0","id":93,"method":"tools/call","params":{"name":"x","arguments":{"code":NaN}}}',
    '{"jsonrpc":"2.0","id":94,"method":"tools/call","params":{"name":"x","arguments":{"code":' + "9" * 10_000 + "}}}",
    '{"jsonrpc":"2.0","id":95,"method":"tools/call","params":{"name":5,"arguments":[]}}',
    "\x00\xff",
]


def test_no_line_ends_the_server(shared: RawServer) -> None:
    assert shared.process.stdin is not None
    for line in HOSTILE:
        shared.process.stdin.write(line + "\n")
    shared.call(96, "execute_python_code", code="print('still there')")
    while (answer := shared.answer())["id"] != 96:
        assert "still there" not in json.dumps(answer)
    assert "still there" in json.dumps(answer)


def test_a_synchronous_run_over_its_time_is_told_so() -> None:
    server = build_server(SETTINGS, sandbox_from(SETTINGS), lambda _context: "me", ServerOptions(seconds=0.5))
    with session(server) as client:
        answer = client.run(LONG)
        assert answer.is_error
        assert text(answer) == "Execution timed out after 0.5 seconds."
        assert answer.meta is not None
        assert answer.meta["qwed/ended"] == "timed_out"


def test_synchronous_runs_of_one_caller_come_one_after_another() -> None:
    server = build_server(SETTINGS, sandbox_from(SETTINGS), lambda _context: "me")
    code = "import time\nbegun = time.monotonic()\nfor _ in range(200000):\n    pass\nprint(begun, time.monotonic())"

    async def both() -> list[list[float]]:
        spans: list[list[float]] = []

        async def one(client: Client) -> None:
            output = text(await client.call_tool("execute_python_code", {"code": code}))
            spans.append([float(word) for word in output.splitlines()[1].split()])

        async with Client(server) as client, anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(one, client)
        return sorted(spans)

    first, second, third = anyio.run(both)
    assert first[1] <= second[0]
    assert second[1] <= third[0]


def test_too_many_runs_of_one_caller_are_refused() -> None:
    server = build_server(SETTINGS, sandbox_from(SETTINGS), lambda _context: "me", ServerOptions(seconds=0.3))

    async def many() -> list[str]:
        answers: list[str] = []

        async def one(client: Client) -> None:
            answers.append(text(await client.call_tool("execute_python_code", {"code": LONG})))

        async with Client(server) as client:
            with anyio.move_on_after(0.9):
                async with anyio.create_task_group() as tasks:
                    for _ in range(12):
                        tasks.start_soon(one, client)
        return answers

    answers = anyio.run(many)
    assert answers.count("Error: too many of your runs are queued; try again when one has ended.") == 4


def test_an_unexpected_error_is_a_refusal_without_details(capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> Any:
        raise RuntimeError("/a/path/of/ours")

    with session(build_server(SETTINGS, broken, lambda _context: "me")) as client:
        answer = client.run("print(1)")
        assert answer.is_error
        assert text(answer) == "Error: the call could not be carried out, and nothing was verified."
    assert "/a/path/of/ours" not in capfd.readouterr().err


def test_a_sandbox_that_is_not_there_is_policy_of_the_server() -> None:
    from qwed_mcp.sandbox import SandboxUnavailable

    server = build_server(SETTINGS, lambda: SandboxUnavailable("install bubblewrap"), lambda _context: "me")
    with session(server) as client:
        for background in (False, True):
            answer = client.run("print(1)", background=background)
            assert answer.is_error
            assert text(answer).startswith("BLOCKED_ADMIN_POLICY: install bubblewrap (verification_id=")
            assert answer.structured_content["error_code"] == "QWED-MCP-RISK-006"
