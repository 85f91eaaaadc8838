"""`qwed approvals watch`: what waits, as it comes; at a terminal a person settles it by number."""

import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from qwed.cli.actions import lines_of
from qwed.cli.agents.registering import show_fields
from qwed.cli.approvals.deciding import Agent, action_of, elevation, settled
from qwed.cli.asking import Url, Where, server
from qwed.cli.options import DataDir
from qwed.cli.printing import print_json, say

if TYPE_CHECKING:
    from qwed_sdk import QWEDClient

_MOST = 1000
_LINE = 8_192
_HELP = "a N REASON approves, r N REASON rejects, s N shows all of it, q ends"
_VERBS = {"a": ("approve", "approved"), "r": ("reject", "rejected")}


def add_to(approvals: typer.Typer) -> None:
    """Add the command."""
    approvals.command("watch", help="What waits, as it comes; at a terminal it is approved or rejected by number.")(
        _watch
    )


def _watch(
    agent_id: Agent = None,
    once: Annotated[bool, typer.Option("--once", help="show what waits now, and end")] = False,
    interval: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="how often to look")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="print a line of JSON for each")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    with server(Where(url, data_dir)) as client:
        desk = Desk(client, agent_id)
        talks = not as_json and not once and sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
        if talks:
            return _talk(desk, interval)
        while True:
            _tell(desk.look(patient=not once), as_json=as_json or not (once or sys.stdout.isatty()))
            if once:
                return 0
            time.sleep(interval)


class News(NamedTuple):
    """What came and what went since the last look."""

    come: Sequence[tuple[int, Mapping[str, Any]]]
    gone: Sequence[tuple[int, Mapping[str, Any]]]


class Desk:
    """What waits, each under a number that stays its own: what a person read is what they settle."""

    def __init__(self, client: "QWEDClient", agent_id: str | None) -> None:
        self.client = client
        self._agent_id = agent_id
        self._numbers: dict[str, int] = {}
        self._last = 0
        self._unreachable = False

    def look(self, *, patient: bool = True) -> News:
        """What came and went; for whoever is patient nothing, said once, while the server is not reached."""
        from qwed_sdk import QWEDConnectionError, QWEDServerError

        try:
            waiting = self.client.list_approvals("pending", self._agent_id, _MOST)
            left = self._numbers.keys() - {found["approval_id"] for found in waiting}
            gone = [(self._numbers[each], self.client.get_approval(each)) for each in sorted(left)]
        except (QWEDConnectionError, QWEDServerError) as error:
            if not patient:
                raise
            if not self._unreachable:
                say(f"qwed: {error.message}; trying again", err=True)
            self._unreachable = True
            return News([], [])
        self._unreachable = False
        for _, approval in gone:
            del self._numbers[approval["approval_id"]]
        return News(
            [self._numbered(found) for found in waiting[::-1] if found["approval_id"] not in self._numbers], gone
        )

    def _numbered(self, approval: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        self._last += 1
        self._numbers[approval["approval_id"]] = self._last
        return self._last, approval

    def id_of(self, number: int) -> str | None:
        """The approval under a number, while it waits."""
        return next((found for found, its in self._numbers.items() if its == number), None)

    @property
    def count(self) -> int:
        """How many wait."""
        return len(self._numbers)


def _tell(news: News, *, as_json: bool) -> None:
    for _, approval in (*news.gone, *news.come) if as_json else ():
        print_json(dict(approval))
    for number, approval in () if as_json else news.gone:
        say(f"{number:>4}  {approval['approval_id']} is {approval['state']}")
    for number, approval in () if as_json else news.come:
        say(
            f"{number:>4}  {approval['approval_id']}  {approval['agent_id']}  {approval.get('risk_level')} risk", "bold"
        )
        action = action_of(approval)
        for line in lines_of(action) if action else [elevation(approval)]:
            say(f"      {line}")
        said = approval.get("justification") or approval.get("user_intent")
        if said:
            say(f"      it says: {said}")
        say(f"      expires {approval['expires_at']}")
    sys.stdout.flush()


def _talk(desk: Desk, interval: float) -> int:
    say(_HELP)
    said = _Lines(sys.stdin.fileno())
    unfinished: list[str] = []
    first = True
    while True:
        news = desk.look()
        _tell(news, as_json=False)
        if first or news.come or news.gone:
            say(f"{desk.count} wait" if desk.count else "nothing waits", "dim")
        first = False
        for line in said.within(interval):
            if line is None or line.strip() == "q":
                return 0
            words = line.split(maxsplit=2 - len(unfinished))
            # An empty line takes back what was begun.
            unfinished = _obey([*unfinished, *words], desk) if words else []


def _obey(words: list[str], desk: Desk) -> list[str]:
    """Do what the person said; the words so far, where the reason is still to come."""
    verb, number = words[0], words[1] if len(words) > 1 else ""
    approval_id = desk.id_of(int(number)) if number.isdecimal() and len(number) < 10 else None
    if verb not in ("a", "r", "s") or approval_id is None:
        say(_HELP if verb not in ("a", "r", "s") else f"`{number}` is none of the numbers that wait")
        return []
    if verb == "s":
        _attempt(lambda: show_fields(desk.client.get_approval(approval_id)))
        return []
    if len(words) < 3:
        say(f"why? (the reason to {_VERBS[verb][0]} {number})")
        return words
    method, wanted = _VERBS[verb]
    _attempt(lambda: settled(getattr(desk.client, method)(approval_id, words[2]), wanted, as_json=False))
    return []


def _attempt(act: Any) -> None:
    """Do it; what is refused is told, and the watch goes on."""
    from qwed_sdk import QWEDError

    try:
        act()
    except QWEDError as error:
        say(f"{error.message} ({error.code})" if error.code else error.message, "bold red")


class _Lines:
    """What a person types, line by line, without waiting for more than the next look."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""

    def within(self, seconds: float) -> Iterator[str | None]:
        """The lines that come in so many seconds; None is the end of them all."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return
        piece = os.read(self._descriptor, _LINE)
        if not piece:
            yield None
            return
        *lines, self._text = (self._text + piece).split(b"\n")
        self._text = self._text[-_LINE:]
        for line in lines:
            yield line.decode(errors="replace").rstrip("\r")
