"""Command of `qwed demo`: checks the options, runs the scenes and prints the results."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TextIO

from qwed.cli.demo.scenario import APPROVAL_REASON, PERSON, REJECTION_REASON, SCENES, YOU, Action, Scene
from qwed.cli.output import EXIT_FAILED, console, echo, fail, print_json

if TYPE_CHECKING:
    from qwed.cli.demo.evidence import LogEvidence
    from qwed.cli.demo.render import DemoRenderer
    from qwed.cli.demo.runner import Approver, SceneOutcome
    from qwed.cli.demo.timing import Pacer

_NEEDED = ("uvicorn", "starlette", "sqlglot")
_YES, _NO = "y", ("n", "\x04", "")
"""Keys that answer the question; the end of the input means no."""


def run(fast: bool, interactive: bool, as_json: bool, scenes: Sequence[Scene] = SCENES) -> int:
    """Run the demo; return 0 if every result was as expected and 1 otherwise; exit with 2 if no server started."""
    at_a_terminal = _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
    if interactive and (as_json or not at_a_terminal):
        fail("--interactive needs a terminal and cannot be combined with --json")
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        fail(f"the demo starts a server and needs `{missing[0]}`: pip install 'qwed[server]'")

    from qwed.cli.demo.demo_server import ServerStartError
    from qwed.cli.demo.render import DemoRenderer
    from qwed.cli.demo.timing import Pacer

    rich_console = console()
    rich_console.quiet = as_json
    pacer = Pacer(paced=not (fast or as_json) and _is_terminal(sys.stdout), asks=interactive)
    renderer = DemoRenderer(rich_console, pacer, len(scenes))
    try:
        outcomes, evidence = _run_scenes(scenes, renderer, pacer, interactive)
    except ServerStartError as error:
        fail(f"the server did not start: {error}")
    deviations = [deviation for outcome in outcomes for deviation in outcome.deviations] + [*evidence.deviations]
    if as_json:
        print_json(_as_json(outcomes, evidence))
    renderer.show_summary(outcomes, len(deviations))
    return EXIT_FAILED if deviations else 0


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _run_scenes(
    scenes: Sequence[Scene], renderer: "DemoRenderer", pacer: "Pacer", interactive: bool
) -> tuple[list["SceneOutcome"], "LogEvidence"]:
    from qwed.cli.demo.demo_server import ServerStartError, run_demo_server, wait_until_ready, without_proxy
    from qwed.cli.demo.evidence import gather_evidence
    from qwed.cli.demo.runner import register_participants, run_scene
    from qwed.cli.demo.sample_db import Shop
    from qwed.cli.demo.signals import StopSignals
    from qwed_sdk import QWEDClient, QWEDError

    stops = StopSignals()
    with ExitStack() as stack:
        stack.enter_context(stops.handled())
        stack.enter_context(pacer.reading_keys())
        stack.enter_context(without_proxy())
        renderer.show_starting()
        server = stack.enter_context(run_demo_server(stops))
        owner = stack.enter_context(QWEDClient(server.owner_key, server.base_url))
        shop = stack.enter_context(closing(Shop(server.directory / "shop.db")))
        try:
            wait_until_ready(owner)
            participants = register_participants(owner, server.base_url, shop, _approver_for(pacer, interactive))
        except QWEDError as error:
            raise ServerStartError(str(error)) from None
        stack.callback(participants.approver.close)
        renderer.show_intro(server.base_url)
        outcomes = [run_scene(scene, participants, renderer) for scene in scenes]
        evidence = gather_evidence(server.data_dir, server.directory, owner, _first_denied(outcomes))
        renderer.show_evidence(evidence)
    return outcomes, evidence


def _first_denied(outcomes: Sequence["SceneOutcome"]) -> str:
    """Return the id of the first denied action: the forgery changes its record."""
    steps = (step for outcome in outcomes for step in outcome.steps)
    return next((str(step.answer.action_id) for step in steps if step.outcome.decision == "DENIED"), "")


def _approver_for(pacer: "Pacer", interactive: bool) -> "Approver":
    from qwed.cli.demo.runner import PersonDecision

    def scripted_approver(_action: Action) -> PersonDecision:
        return PersonDecision(PERSON, True, APPROVAL_REASON)

    def interactive_approver(_action: Action) -> PersonDecision:
        pacer.discard_keys()
        echo("  You are the person. May the agent do this? [y/n]", "bold yellow")
        while (key := pacer.key().lower()) != _YES and key not in _NO:
            pass
        approves = key == _YES
        return PersonDecision(YOU, approves, APPROVAL_REASON if approves else REJECTION_REASON)

    return interactive_approver if interactive else scripted_approver


def _as_json(outcomes: Sequence["SceneOutcome"], evidence: "LogEvidence") -> dict[str, Any]:
    """Return the results as a JSON-serializable dict."""
    from qwed.cli.demo.render import summarize

    deviations = [deviation for outcome in outcomes for deviation in outcome.deviations] + [*evidence.deviations]
    return {
        "as_promised": not deviations,
        "scenes": [_scene_as_json(outcome) for outcome in outcomes],
        "log": {
            "honest": evidence.honest._asdict(),
            "forged": evidence.forged._asdict(),
            "deviations": evidence.deviations,
        },
        "summary": summarize(outcomes),
    }


def _scene_as_json(outcome: "SceneOutcome") -> dict[str, Any]:
    scene = outcome.scene
    return {
        "name": scene.name,
        "title": scene.title,
        "told": scene.task,
        "asked": [
            {
                "action": step.action,
                "decision": step.outcome.decision,
                "error": step.answer.error,
                "verification": step.answer.verification,
                "verified_query": step.answer.verified_query,
                "action_id": step.answer.action_id,
                "ruling": None if step.ruling is None else step.ruling._asdict(),
                "done": step.done,
                "ms": round(step.ms, 2),
            }
            for step in outcome.steps
        ],
        "world": {**outcome.facts._asdict(), "trust": outcome.trust, "spent_usd": outcome.spent_usd},
        "moral": outcome.moral,
        "as_promised": not outcome.deviations,
        "deviations": outcome.deviations,
    }
