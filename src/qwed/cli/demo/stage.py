"""The demo as a person sees it: drawn as wide as the terminal, and the same story where there are no colours."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from qwed.cli.demo.evidence import FORGERY, Checked, Evidence
from qwed.cli.demo.pace import Pace
from qwed.cli.demo.story import NEXT, Action, Scene
from qwed.cli.printing import shown

if TYPE_CHECKING:
    from qwed.cli.demo.play import Asked, Outcome

_WIDEST = 100
_NARROWEST = 40
_LABEL, _INNER_LABEL = 10, 8
"""Columns of what stands before a text, outside and inside a box: the texts stand under each other."""
_DEEDS = {"execute_sql": "reads", "send_email": "sends"}
_INDENT = (0, 0, 0, 2)
_STYLES = {
    "APPROVED": "green",
    "CORRECTED": "cyan",
    "PENDING": "yellow",
    "DENIED": "red",
    "BUDGET_EXCEEDED": "red",
}
_MARKS = {"APPROVED": "✓", "CORRECTED": "✓", "PENDING": "?", "DENIED": "✗", "BUDGET_EXCEEDED": "✗"}
_PLAIN_MARKS = {"✓": "+", "✗": "x", "·": "-", "▸": ">"}
_SHORT, _LONG = 0.7, 1.6
"""Seconds: for a line, and for what one should have read before the story goes on."""
_INTRO = (
    "A small shop lets an AI agent answer its customers. The agent holds the keys to the order database, the bank "
    "account and the mailbox, and it believes whatever it reads.\n\n"
    "The agent is scripted. The rest is real: a qwed server was started for you on {where}, every step is asked over "
    "HTTP, and what is permitted is really done, in a database that is thrown away at the end."
)
_COUNTED = (
    "{asked} steps asked: {passed} passed, {repaired} repaired, {stopped} stopped, {by_a_person} put before a person.\n"
    "Half of the decisions took {median_ms:.1f} ms or less, the slowest {slowest_ms:.1f} ms, over HTTP and with the "
    "record on disk before the answer."
)
_PROOF = "Every answer is on record, and anybody can check that the record was not touched:"
_FORGER = "Now a forger, who may write to a copy of the database, makes it say that the DROP was approved:"


class Stage:
    """Draws each part of the story as it happens."""

    def __init__(self, console: Console, pace: Pace, scenes: int) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns
        console.width = max(_NARROWEST, min(columns, _WIDEST))
        self._console = console
        self._pace = pace
        self._scenes = scenes
        self._number = 0
        self._plain = not console.encoding.lower().startswith("utf")

    def mark(self, char: str) -> str:
        """The character, or one that every terminal has."""
        return _PLAIN_MARKS.get(char, char) if self._plain else char

    # The story

    def waits(self) -> None:
        """The server is starting; what is drawn next covers the line."""
        if self._console.is_terminal:
            self._console.print(Text("starting a server ...", "dim"), end="\r")

    def begins(self, base_url: str) -> None:
        """Who plays, and what is real about it."""
        text = _INTRO.format(where=base_url.removeprefix("http://"))
        self._draw(Panel(Text(text), title="qwed demo", border_style="blue", padding=(1, 2), box=box.ROUNDED))
        if self._pace.paced:
            self._draw(Text("  any key goes on faster, Ctrl-C ends it", "dim"))
        self._pace.wait(3 * _LONG)

    def opens(self, scene: Scene) -> None:
        """A scene begins."""
        self._number += 1
        self._heading(f"{self._number}/{self._scenes} {self.mark('·')} {scene.title}")
        self._row("told", Text(scene.told))
        self._pace.wait(_SHORT)

    def tries(self, action: Action) -> None:
        """What the agent wants to do."""
        self._row("tries", Text(described(action), "bold"))
        self._pace.wait(_SHORT)

    def hears(self, asked: "Asked") -> None:
        """What qwed said, and what was done then."""
        if asked.ruling is not None:
            said = "yes" if asked.ruling.approves else "no"
            self._row("person", Text(f'{asked.ruling.by}: {said}, "{asked.ruling.reason}"', "yellow"))
            self._pace.wait(_SHORT)
        self._verdict(asked)
        if asked.done is not None:
            self._row(_DEEDS.get(asked.action["type"], "does"), Text(shown(asked.done), "italic"))
        self._pace.wait(_LONG if asked.answer.error else _SHORT)

    def closes(self, outcome: "Outcome") -> None:
        """How the world is now, and whether that was promised."""
        if outcome.moral:
            self._row(self.mark("▸"), Text(outcome.moral, "bold green"))
        self._deviations(outcome.deviations)
        self._pace.wait(_LONG)

    # The end of it

    def shows(self, evidence: Evidence) -> None:
        """The log, verified, and the forger, found."""
        self._heading("The proof")
        if not evidence.honest.entries:
            self._deviations(evidence.deviations)
            return
        self._draw(Padding(Text(_PROOF), _INDENT))
        self._checked(evidence.honest, "data")
        self._pace.wait(_LONG)
        self._draw(Padding(Text(_FORGER), (1, 0, 0, 2)))
        self._draw(Padding(Text(f"{FORGERY} ...", "bold"), (0, 0, 0, 4)))
        self._pace.wait(_LONG)
        self._checked(evidence.forged, "copy")
        self._deviations(evidence.deviations)
        self._pace.wait(_LONG)

    def ends(self, outcomes: Sequence["Outcome"], deviations: int) -> None:
        """What there was, in a table, and what to type next."""
        self._heading("What happened")
        self._draw(Padding(self._table(outcomes), _INDENT))
        self._draw(Padding(Text(_COUNTED.format(**summed(outcomes))), (1, 0, 0, 2)))
        if deviations:
            told = "1 thing was" if deviations == 1 else f"{deviations} things were"
            self._draw(Padding(Text(f"{told} not as promised", "bold red"), (1, 0, 0, 2)))
            return
        nexts = Table.grid(padding=(0, 3))
        for command, purpose in NEXT:
            nexts.add_row(Text(command, "bold"), Text(purpose, "dim"))
        self._draw(Text(""))
        self._draw(Panel(nexts, title="type next", title_align="left", border_style="blue", box=box.ROUNDED))

    # Parts of it

    def _verdict(self, asked: "Asked") -> None:
        answer, decision = asked.answer, asked.said.decision
        style = _STYLES.get(decision, "red")
        head = f"{self.mark(_MARKS.get(decision, '✗'))} {decision}"
        risk = (answer.verification or {}).get("risk_level")
        took = "" if asked.ruling is not None else f"{asked.ms:.1f} ms"
        foot = f" {self.mark('·')} ".join(filter(None, [f"{risk} risk" if risk else "", took]))
        rows = list(_reasons(asked))
        if not rows:
            self._row("qwed", Text.assemble((head, f"bold {style}"), (f"  {foot}", "dim")))
            return
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=_INNER_LABEL, no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(label, Text(shown(text)))
        panel = Panel(
            grid,
            title=Text(head, f"bold {style}"),
            title_align="left",
            subtitle=Text(foot, "dim"),
            subtitle_align="right",
            border_style=style,
            box=box.ROUNDED,
        )
        self._draw(Padding(panel, _INDENT))

    def _checked(self, checked: Checked, place: str) -> None:
        style = "green" if checked.valid else "red"
        mark = self.mark("✓" if checked.valid else "✗")
        lines = [Text(f"$ qwed audit verify --data-dir {place} --head head.json", "bold")]
        lines += [Text(shown(finding)) for finding in checked.findings[:3]]
        if len(checked.findings) > 3:
            lines.append(Text(f"and {len(checked.findings) - 3} more"))
        verdict = "nothing is wrong" if checked.valid else "something was changed"
        counted = f"{checked.entries} entries, {checked.heads} signed heads"
        lines.append(Text(f"{mark} {counted}: {verdict}", f"bold {style}"))
        self._draw(Padding(Panel(Group(*lines), border_style=style, box=box.ROUNDED), _INDENT))

    def _table(self, outcomes: Iterable["Outcome"]) -> Table:
        drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        drawn.add_column("scene", no_wrap=True)
        drawn.add_column("qwed said", no_wrap=True)
        drawn.add_column("ms", justify="right", no_wrap=True)
        for outcome in outcomes:
            for number, asked in enumerate(outcome.asked):
                decision, code = asked.said
                said = Text(f"{self.mark(_MARKS.get(decision, '✗'))} {decision}", _STYLES.get(decision, "red"))
                by_hand = asked.ruling is not None
                took = "" if by_hand else f"{asked.ms:.1f}"
                said.append(" by a person" if by_hand else f"  {code}" if code else "", "dim")
                drawn.add_row("" if number else outcome.scene.title, said, took)
        return drawn

    def _heading(self, title: str) -> None:
        self._draw(Text(""))
        self._draw(Rule(Text(title, "bold"), align="left", style="blue"))

    def _row(self, label: str, text: Text) -> None:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=_LABEL, no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        grid.add_row(label, text)
        self._draw(Padding(grid, _INDENT))

    def _deviations(self, deviations: Iterable[str]) -> None:
        for each in deviations:
            self._row("", Text(f"{self.mark('✗')} not as promised: {shown(each)}", "bold red"))

    def _draw(self, what: RenderableType) -> None:
        if self._console.is_terminal:
            self._console.print(what)
            return
        with self._console.capture() as drawn:
            self._console.print(what)
        for line in drawn.get().splitlines():
            # Not through rich, which takes a reader that has left, such as `head`, for a failure.
            print(line.rstrip(), flush=True)


def described(action: Action) -> str:
    """The action in one line."""
    name = action.get("tool") or action["type"]
    cost = f" for {action['cost']['usd']} USD" if "cost" in action else ""
    if "query" in action:
        return shown(f"{name}: {action['query']}")
    listed = ", ".join(f"{key}={_quoted(value)}" for key, value in action["parameters"].items())
    return shown(f"{name}({listed}){cost}")


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _reasons(asked: "Asked") -> Iterable[tuple[str, str]]:
    """What a person wants to know of an answer; nothing of one that simply permits."""
    answer = asked.answer
    error: Mapping[str, Any] = answer.error or {}
    verification: Mapping[str, Any] = answer.verification or {}
    if answer.corrected:
        yield "why", verification.get("message", "")
        yield "runs", answer.verified_query or described(answer.corrected)
        return
    if not error:
        return
    yield "code", error["code"]
    yield "why", error["message"]
    effects = verification.get("effects") or ()
    if effects:
        yield "effects", ", ".join(f"{each['effect']} {each['target']}" for each in effects)
    if error.get("suggestion"):
        yield "advice", error["suggestion"]


def summed(outcomes: Sequence["Outcome"]) -> dict[str, Any]:
    """The story in figures."""
    asked = [each for outcome in outcomes for each in outcome.asked if each.ruling is None]
    decisions = [each.said.decision for each in asked]
    times = [each.ms for each in asked] or [0.0]
    return {
        "asked": len(asked),
        "passed": decisions.count("APPROVED"),
        "repaired": decisions.count("CORRECTED"),
        "stopped": decisions.count("DENIED") + decisions.count("BUDGET_EXCEEDED"),
        "by_a_person": decisions.count("PENDING"),
        "median_ms": round(median(times), 2),
        "slowest_ms": round(max(times), 2),
    }
