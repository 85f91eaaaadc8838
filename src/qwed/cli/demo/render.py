"""Rendering of the demo: as wide as the terminal, and complete without colours."""

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

from qwed.cli.demo.evidence import FORGERY, LogCheck, LogEvidence
from qwed.cli.demo.scenario import NEXT, Action, Scene
from qwed.cli.demo.timing import Pacer
from qwed.cli.output import sanitize

if TYPE_CHECKING:
    from qwed.cli.demo.runner import DemoStep, SceneOutcome

_WIDEST = 100
_NARROWEST = 40
_LABEL, _INNER_LABEL = 10, 8
"""Width of the label column outside and inside a box, so that the texts align."""
_VERBS = {"execute_sql": "reads", "send_email": "sends"}
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
"""Pauses in seconds: after a line, and after text that needs reading."""
_INTRO = (
    "A small shop lets an AI agent answer its customers. The agent has access to the order database, the bank "
    "account and the mailbox, and it believes everything it reads.\n\n"
    "The agent is scripted. The rest is real: a qwed server was started on {where}, every step is verified over "
    "HTTP, and permitted actions are executed in a database that is deleted at the end."
)
_SUMMARY = (
    "{asked} steps verified: {passed} approved, {repaired} corrected, {stopped} stopped, {by_a_person} sent to a "
    "person.\n"
    "Half of the decisions took {median_ms:.1f} ms or less, the slowest {slowest_ms:.1f} ms, over HTTP and with the "
    "record on disk before the answer."
)
_PROOF = "Every decision is in the log, and anyone can verify that the log was not changed:"
_FORGER = "Now a forger with write access to a copy of the database changes the DROP to approved:"


class DemoRenderer:
    """Draws each part of the demo as it happens."""

    def __init__(self, console: Console, pacer: Pacer, scenes: int) -> None:
        columns = shutil.get_terminal_size((80, 24)).columns
        console.width = max(_NARROWEST, min(columns, _WIDEST))
        self._console = console
        self._pacer = pacer
        self._scenes = scenes
        self._number = 0
        self._plain = not console.encoding.lower().startswith("utf")

    def mark(self, char: str) -> str:
        """Return the character, or an ASCII replacement if the terminal is not UTF-8."""
        return _PLAIN_MARKS.get(char, char) if self._plain else char

    # Scenes

    def show_starting(self) -> None:
        """Show that the server is starting; the next output covers the line."""
        if self._console.is_terminal:
            self._console.print(Text("starting a server ...", "dim"), end="\r")

    def show_intro(self, base_url: str) -> None:
        """Show the introduction."""
        text = _INTRO.format(where=base_url.removeprefix("http://"))
        self._draw(Panel(Text(text), title="qwed demo", border_style="blue", padding=(1, 2), box=box.ROUNDED))
        if self._pacer.paced:
            self._draw(Text("  press any key to continue faster, Ctrl-C to quit", "dim"))
        self._pacer.wait(3 * _LONG)

    def show_scene(self, scene: Scene) -> None:
        """Show the title and the instruction of a scene."""
        self._number += 1
        self._heading(f"{self._number}/{self._scenes} {self.mark('·')} {scene.title}")
        self._row("task", Text(scene.task))
        self._pacer.wait(_SHORT)

    def show_action(self, action: Action) -> None:
        """Show the action that the agent requests."""
        self._row("tries", Text(describe_action(action), "bold"))
        self._pacer.wait(_SHORT)

    def show_step(self, step: "DemoStep") -> None:
        """Show the decision and what was executed."""
        if step.ruling is not None:
            answer = "yes" if step.ruling.approves else "no"
            self._row("person", Text(f'{step.ruling.by}: {answer}, "{step.ruling.reason}"', "yellow"))
            self._pacer.wait(_SHORT)
        self._verdict(step)
        if step.done is not None:
            self._row(_VERBS.get(step.action["type"], "does"), Text(sanitize(step.done), "italic"))
        self._pacer.wait(_LONG if step.answer.error else _SHORT)

    def show_outcome(self, outcome: "SceneOutcome") -> None:
        """Show the outcome of a scene and its deviations."""
        if outcome.moral:
            self._row(self.mark("▸"), Text(outcome.moral, "bold green"))
        self._deviations(outcome.deviations)
        self._pacer.wait(_LONG)

    # Conclusion

    def show_evidence(self, evidence: LogEvidence) -> None:
        """Show the verified log and the detected forgery."""
        self._heading("The proof")
        if not evidence.honest.entries:
            self._deviations(evidence.deviations)
            return
        self._draw(Padding(Text(_PROOF), _INDENT))
        self._checked(evidence.honest, "data")
        self._pacer.wait(_LONG)
        self._draw(Padding(Text(_FORGER), (1, 0, 0, 2)))
        self._draw(Padding(Text(f"{FORGERY} ...", "bold"), (0, 0, 0, 4)))
        self._pacer.wait(_LONG)
        self._checked(evidence.forged, "copy")
        self._deviations(evidence.deviations)
        self._pacer.wait(_LONG)

    def show_summary(self, outcomes: Sequence["SceneOutcome"], deviations: int) -> None:
        """Show the summary table and what to run next."""
        self._heading("What happened")
        self._draw(Padding(self._table(outcomes), _INDENT))
        self._draw(Padding(Text(_SUMMARY.format(**summarize(outcomes))), (1, 0, 0, 2)))
        if deviations:
            count = "1 result was" if deviations == 1 else f"{deviations} results were"
            self._draw(Padding(Text(f"{count} not as expected", "bold red"), (1, 0, 0, 2)))
            return
        nexts = Table.grid(padding=(0, 3))
        for command, purpose in NEXT:
            nexts.add_row(Text(command, "bold"), Text(purpose, "dim"))
        self._draw(Text(""))
        self._draw(Panel(nexts, title="next steps", title_align="left", border_style="blue", box=box.ROUNDED))

    # Parts

    def _verdict(self, step: "DemoStep") -> None:
        answer, decision = step.answer, step.outcome.decision
        style = _STYLES.get(decision, "red")
        head = f"{self.mark(_MARKS.get(decision, '✗'))} {decision}"
        risk = (answer.verification or {}).get("risk_level")
        duration = "" if step.ruling is not None else f"{step.ms:.1f} ms"
        foot = f" {self.mark('·')} ".join(filter(None, [f"{risk} risk" if risk else "", duration]))
        rows = list(_reason_rows(step))
        if not rows:
            self._row("qwed", Text.assemble((head, f"bold {style}"), (f"  {foot}", "dim")))
            return
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=_INNER_LABEL, no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(label, Text(sanitize(text)))
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

    def _checked(self, checked: LogCheck, name: str) -> None:
        style = "green" if checked.valid else "red"
        mark = self.mark("✓" if checked.valid else "✗")
        lines = [Text(f"$ qwed audit verify --data-dir {name} --head head.json", "bold")]
        lines += [Text(sanitize(finding)) for finding in checked.findings[:3]]
        if len(checked.findings) > 3:
            lines.append(Text(f"and {len(checked.findings) - 3} more"))
        verdict = "nothing is wrong" if checked.valid else "the log was changed"
        counts = f"{checked.entries} entries, {checked.heads} signed heads"
        lines.append(Text(f"{mark} {counts}: {verdict}", f"bold {style}"))
        self._draw(Padding(Panel(Group(*lines), border_style=style, box=box.ROUNDED), _INDENT))

    def _table(self, outcomes: Iterable["SceneOutcome"]) -> Table:
        rich_table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        rich_table.add_column("scene", no_wrap=True)
        rich_table.add_column("decision", no_wrap=True)
        rich_table.add_column("ms", justify="right", no_wrap=True)
        for outcome in outcomes:
            for number, step in enumerate(outcome.steps):
                decision, code = step.outcome
                cell = Text(f"{self.mark(_MARKS.get(decision, '✗'))} {decision}", _STYLES.get(decision, "red"))
                by_hand = step.ruling is not None
                duration = "" if by_hand else f"{step.ms:.1f}"
                cell.append(" by a person" if by_hand else f"  {code}" if code else "", "dim")
                rich_table.add_row("" if number else outcome.scene.title, cell, duration)
        return rich_table

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
        for deviation in deviations:
            self._row("", Text(f"{self.mark('✗')} not as expected: {sanitize(deviation)}", "bold red"))

    def _draw(self, what: RenderableType) -> None:
        if self._console.is_terminal:
            self._console.print(what)
            return
        with self._console.capture() as drawn:
            self._console.print(what)
        for line in drawn.get().splitlines():
            # Not through rich, which treats a closed pipe (such as `| head`) as a failure.
            print(line.rstrip(), flush=True)


def describe_action(action: Action) -> str:
    """Return the action as one line."""
    name = action.get("tool") or action["type"]
    cost = f" for {action['cost']['usd']} USD" if "cost" in action else ""
    if "query" in action:
        return sanitize(f"{name}: {action['query']}")
    listed = ", ".join(f"{key}={_quoted(value)}" for key, value in action["parameters"].items())
    return sanitize(f"{name}({listed}){cost}")


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _reason_rows(step: "DemoStep") -> Iterable[tuple[str, str]]:
    """Yield label and text for each detail of a decision; nothing if it simply permits."""
    answer = step.answer
    error: Mapping[str, Any] = answer.error or {}
    verification: Mapping[str, Any] = answer.verification or {}
    if answer.corrected:
        yield "why", verification.get("message", "")
        yield "runs", answer.verified_query or describe_action(answer.corrected)
        return
    if not error:
        return
    yield "code", error["code"]
    yield "why", error["message"]
    effects = verification.get("effects") or ()
    if effects:
        yield "effects", ", ".join(f"{effect['effect']} {effect['target']}" for effect in effects)
    if error.get("suggestion"):
        yield "advice", error["suggestion"]


def summarize(outcomes: Sequence["SceneOutcome"]) -> dict[str, Any]:
    """Return the counts and times of the demo."""
    steps = [step for outcome in outcomes for step in outcome.steps if step.ruling is None]
    decisions = [step.outcome.decision for step in steps]
    times = [step.ms for step in steps] or [0.0]
    return {
        "asked": len(steps),
        "passed": decisions.count("APPROVED"),
        "repaired": decisions.count("CORRECTED"),
        "stopped": decisions.count("DENIED") + decisions.count("BUDGET_EXCEEDED"),
        "by_a_person": decisions.count("PENDING"),
        "median_ms": round(median(times), 2),
        "slowest_ms": round(max(times), 2),
    }
