"""`qwed approvals watch`: print approvals as they arrive; on a terminal, resolve them by number."""

import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from qwed.cli.action_format import action_lines
from qwed.cli.agents.register import show_fields
from qwed.cli.approvals.decide_commands import Agent, permitted_action, show_resolution, trust_request_text
from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import DataDir
from qwed.cli.output import echo, print_json

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_MAX_APPROVALS = 1000
_MAX_LINE = 8_192
_HELP = "a N REASON approves, r N REASON rejects, s N shows every field, q quits"
_VERBS = {"a": ("approve", "approved"), "r": ("reject", "rejected")}


def add_to(approvals: typer.Typer) -> None:
    """Add the command."""
    approvals.command("watch", help="Watch pending approvals; on a terminal, approve or reject them by number.")(_watch)


def _watch(
    agent_id: Agent = None,
    once: Annotated[bool, typer.Option("--once", help="print pending approvals and exit")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="poll interval")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="print one line of JSON per approval")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server_client(Target(url, data_dir)) as client:
        watcher = ApprovalWatcher(client, agent_id)
        interactive = not as_json and not once and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
        if interactive:
            return _run_interactive(watcher, interval)
        while True:
            _print_changes(watcher.poll(retry=not once), as_json=as_json or not (once or sys.stdout.isatty()))
            if once:
                return 0
            time.sleep(interval)


class ApprovalChanges(NamedTuple):
    """Approvals that were added or resolved since the last poll."""

    added: Sequence[tuple[int, Mapping[str, Any]]]
    resolved: Sequence[tuple[int, Mapping[str, Any]]]


class ApprovalWatcher:
    """Pending approvals, each under a number that never changes, so that a person resolves the one they read."""

    def __init__(self, client: "QWEDClient", agent_id: str | None) -> None:
        self.client = client
        self._agent_id = agent_id
        self._numbers: dict[str, int] = {}
        self._last = 0
        self._unreachable = False

    def poll(self, *, retry: bool = True) -> ApprovalChanges:
        """Return the changes since the last poll; if `retry`, report an unreachable server once and return no
        changes."""
        from qwed_sdk import QWEDConnectionError, QWEDServerError

        try:
            pending = self.client.list_approvals("pending", self._agent_id, _MAX_APPROVALS)
            resolved_ids = self._numbers.keys() - {approval["approval_id"] for approval in pending}
            resolved = [(self._numbers[key], self.client.get_approval(key)) for key in sorted(resolved_ids)]
        except (QWEDConnectionError, QWEDServerError) as error:
            if not retry:
                raise
            if not self._unreachable:
                echo(f"qwed: {error.message}; retrying", err=True)
            self._unreachable = True
            return ApprovalChanges([], [])
        self._unreachable = False
        for _, approval in resolved:
            del self._numbers[approval["approval_id"]]
        return ApprovalChanges(
            [self._numbered(item) for item in pending[::-1] if item["approval_id"] not in self._numbers], resolved
        )

    def _numbered(self, approval: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        self._last += 1
        self._numbers[approval["approval_id"]] = self._last
        return self._last, approval

    def id_of(self, number: int) -> str | None:
        """Return the id of the pending approval with this number, or None."""
        return next((approval_id for approval_id, value in self._numbers.items() if value == number), None)

    @property
    def count(self) -> int:
        """Number of pending approvals."""
        return len(self._numbers)


def _print_changes(changes: ApprovalChanges, *, as_json: bool) -> None:
    for _, approval in (*changes.resolved, *changes.added) if as_json else ():
        print_json(dict(approval))
    for number, approval in () if as_json else changes.resolved:
        echo(f"{number:>4}  {approval['approval_id']} is {approval['state']}")
    for number, approval in () if as_json else changes.added:
        echo(
            f"{number:>4}  {approval['approval_id']}  {approval['agent_id']}  {approval.get('risk_level')} risk", "bold"
        )
        action = permitted_action(approval)
        for line in action_lines(action) if action else [trust_request_text(approval)]:
            echo(f"      {line}")
        stated = approval.get("justification") or approval.get("user_intent")
        if stated:
            echo(f"      justification: {stated}")
        echo(f"      expires {approval['expires_at']}")
    sys.stdout.flush()


def _run_interactive(watcher: ApprovalWatcher, interval: float) -> int:
    echo(_HELP)
    reader = _LineReader(sys.stdin.fileno())
    unfinished: list[str] = []
    first = True
    while True:
        changes = watcher.poll()
        _print_changes(changes, as_json=False)
        if first or changes.added or changes.resolved:
            echo(f"{watcher.count} pending" if watcher.count else "nothing pending", "dim")
        first = False
        for line in reader.read_within(interval):
            if line is None or line.strip() == "q":
                return 0
            words = line.split(maxsplit=2 - len(unfinished))
            # An empty line cancels an unfinished command.
            unfinished = _handle_input([*unfinished, *words], watcher) if words else []


def _handle_input(words: list[str], watcher: ApprovalWatcher) -> list[str]:
    """Run what the person typed; return the words so far if the reason is still missing."""
    verb, number = words[0], words[1] if len(words) > 1 else ""
    approval_id = watcher.id_of(int(number)) if number.isdecimal() and len(number) < 10 else None
    if verb not in ("a", "r", "s") or approval_id is None:
        echo(_HELP if verb not in ("a", "r", "s") else f"`{number}` is not the number of a pending approval")
        return []
    if verb == "s":
        _run_or_print_error(lambda: show_fields(watcher.client.get_approval(approval_id)))
        return []
    if len(words) < 3:
        echo(f"reason to {_VERBS[verb][0]} {number}?")
        return words
    method, expected = _VERBS[verb]
    _run_or_print_error(
        lambda: show_resolution(getattr(watcher.client, method)(approval_id, words[2]), expected, as_json=False)
    )
    return []


def _run_or_print_error(act: Any) -> None:
    """Run the function; print an error of the server, so that the watch continues."""
    from qwed_sdk import QWEDError

    try:
        act()
    except QWEDError as error:
        echo(f"{error.message} ({error.code})" if error.code else error.message, "bold red")


class _LineReader:
    """Non-blocking reader of the lines a person types."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""

    def read_within(self, seconds: float) -> Iterator[str | None]:
        """Yield the lines that arrive within this time; None marks the end of the input."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return
        piece = os.read(self._descriptor, _MAX_LINE)
        if not piece:
            yield None
            return
        *lines, self._text = (self._text + piece).split(b"\n")
        self._text = self._text[-_MAX_LINE:]
        for line in lines:
            yield line.decode(errors="replace").rstrip("\r")
