"""The shell guard as an engine: what a command would do, read in a worker, because its parser is not ours to trust."""

from qwed.engines.protocol import EngineRequest
from qwed.guards import shell
from qwed.words import Effect, EffectKind, Status, Verdict

ENGINE = "shell"


def verify(request: EngineRequest) -> Verdict:
    """What the command would do; what cannot be told is INCONCLUSIVE, what must never happen is BLOCKED."""
    if not request.query:
        return Verdict(
            status=Status.FAILED,
            engine=ENGINE,
            message="give the command in `action.query`",
            effects=(Effect(EffectKind.UNRESOLVED),),
            checks_failed=("command_given",),
        )
    found = shell.findings(request.query)
    if found.violations:
        return Verdict(
            status=Status.BLOCKED,
            engine=ENGINE,
            message="; ".join(found.violations),
            effects=found.effects,
            violations=found.violations,
            checks_failed=("no_dangerous_calls",),
        )
    unresolved = any(effect.kind is EffectKind.UNRESOLVED for effect in found.effects)
    return Verdict(
        status=Status.INCONCLUSIVE if unresolved else Status.VERIFIED,
        engine=ENGINE,
        message="part of the command cannot be resolved" if unresolved else "",
        effects=found.effects,
        checks_passed=("no_dangerous_calls",),
        checks_failed=("command_resolved",) if unresolved else (),
    )
