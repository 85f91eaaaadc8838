"""`qwed demo`: an agent under attack, played against a server of its own, in a minute."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TextIO

from qwed.cli.demo.story import APPROVAL_REASON, PERSON, REJECTION_REASON, SCENES, YOU, Action, Scene
from qwed.cli.printing import WRONG, console, print_json, say, sorry

if TYPE_CHECKING:
    from qwed.cli.demo.evidence import Evidence
    from qwed.cli.demo.pace import Pace
    from qwed.cli.demo.play import Outcome, Person
    from qwed.cli.demo.stage import Stage

_NEEDED = ("uvicorn", "starlette", "sqlglot")
_YES, _NO = "y", ("n", "\x04", "")
"""The keys that answer; the end of the input is a no."""


def run(fast: bool, interactive: bool, as_json: bool, scenes: Sequence[Scene] = SCENES) -> int:
    """Play the story; 0 where all of it was as promised, 1 where something was not, 2 where no server started."""
    at_a_terminal = _is_terminal(sys.stdin) and _is_terminal(sys.stdout)
    if interactive and (as_json or not at_a_terminal):
        sorry("--interactive asks you a question: use it at a terminal, without --json")
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sorry(f"the demo starts a server, and `{missing[0]}` is not installed: pip install 'qwed[server]'")

    from qwed.cli.demo.house import ServerDidNotStart
    from qwed.cli.demo.pace import Pace
    from qwed.cli.demo.stage import Stage

    drawn = console()
    drawn.quiet = as_json
    pace = Pace(paced=not (fast or as_json) and _is_terminal(sys.stdout), asks=interactive)
    stage = Stage(drawn, pace, len(scenes))
    try:
        outcomes, evidence = _played(scenes, stage, pace, interactive)
    except ServerDidNotStart as error:
        sorry(f"the server did not start: {error}")
    deviations = [each for outcome in outcomes for each in outcome.deviations] + [*evidence.deviations]
    if as_json:
        print_json(_told(outcomes, evidence))
    stage.ends(outcomes, len(deviations))
    return WRONG if deviations else 0


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _played(
    scenes: Sequence[Scene], stage: "Stage", pace: "Pace", interactive: bool
) -> tuple[list["Outcome"], "Evidence"]:
    from qwed.cli.demo.evidence import gathered
    from qwed.cli.demo.house import ServerDidNotStart, directly, opened, wait_until_ready
    from qwed.cli.demo.play import cast, play
    from qwed.cli.demo.shop import Shop
    from qwed.cli.demo.stops import Stops
    from qwed_sdk import QWEDClient, QWEDError

    stops = Stops()
    with ExitStack() as stack:
        stack.enter_context(stops.heard())
        stack.enter_context(pace.listening())
        stack.enter_context(directly())
        stage.waits()
        house = stack.enter_context(opened(stops))
        owner = stack.enter_context(QWEDClient(house.owner_key, house.base_url))
        shop = stack.enter_context(closing(Shop(house.place / "shop.db")))
        try:
            wait_until_ready(owner)
            people = cast(owner, house.base_url, shop, _person(pace, interactive))
        except QWEDError as error:
            raise ServerDidNotStart(str(error)) from None
        stack.callback(people.approver.close)
        stage.begins(house.base_url)
        outcomes = [play(scene, people, stage) for scene in scenes]
        evidence = gathered(house.data_dir, house.place, owner, _denied(outcomes))
        stage.shows(evidence)
    return outcomes, evidence


def _denied(outcomes: Sequence["Outcome"]) -> str:
    """The action whose record a forger would like to be another: the first that was denied."""
    asked = (each for outcome in outcomes for each in outcome.asked)
    return next((str(each.answer.action_id) for each in asked if each.said.decision == "DENIED"), "")


def _person(pace: "Pace", interactive: bool) -> "Person":
    from qwed.cli.demo.play import Ruling

    def scripted(_action: Action) -> Ruling:
        return Ruling(PERSON, True, APPROVAL_REASON)

    def asked(_action: Action) -> Ruling:
        pace.forget()
        say("  You are the person. May the agent do this? [y/n]", "bold yellow")
        while (key := pace.key().lower()) != _YES and key not in _NO:
            pass
        approves = key == _YES
        return Ruling(YOU, approves, APPROVAL_REASON if approves else REJECTION_REASON)

    return asked if interactive else scripted


def _told(outcomes: Sequence["Outcome"], evidence: "Evidence") -> dict[str, Any]:
    """The whole story as JSON."""
    from qwed.cli.demo.stage import summed

    deviations = [each for outcome in outcomes for each in outcome.deviations] + [*evidence.deviations]
    return {
        "as_promised": not deviations,
        "scenes": [_scene_told(outcome) for outcome in outcomes],
        "log": {
            "honest": evidence.honest._asdict(),
            "forged": evidence.forged._asdict(),
            "deviations": evidence.deviations,
        },
        "summary": summed(outcomes),
    }


def _scene_told(outcome: "Outcome") -> dict[str, Any]:
    scene = outcome.scene
    return {
        "name": scene.name,
        "title": scene.title,
        "told": scene.told,
        "asked": [
            {
                "action": each.action,
                "decision": each.said.decision,
                "error": each.answer.error,
                "verification": each.answer.verification,
                "verified_query": each.answer.verified_query,
                "action_id": each.answer.action_id,
                "ruling": None if each.ruling is None else each.ruling._asdict(),
                "done": each.done,
                "ms": round(each.ms, 2),
            }
            for each in outcome.asked
        ],
        "world": {**outcome.facts._asdict(), "trust": outcome.trust, "spent_usd": outcome.spent_usd},
        "moral": outcome.moral,
        "as_promised": not outcome.deviations,
        "deviations": outcome.deviations,
    }
