"""Shell engine: effects of a command, parsed in a worker because the parser is third-party code."""

from qwed.engines.protocol import EngineRequest
from qwed.guards import shell
from qwed.model import Effect, EffectKind, Status, Verdict

ENGINE = "shell"


def verify(request: EngineRequest) -> Verdict:
    """Return the effects of the command; INCONCLUSIVE if unresolved, BLOCKED for a violation."""
    if not request.query:
        return Verdict(
            status=Status.FAILED,
            engine=ENGINE,
            message="give the command in `action.query`",
            effects=(Effect(EffectKind.UNRESOLVED),),
            checks_failed=("command_given",),
        )
    findings = shell.findings(request.query)
    if findings.violations:
        return Verdict(
            status=Status.BLOCKED,
            engine=ENGINE,
            message="; ".join(findings.violations),
            effects=findings.effects,
            violations=findings.violations,
            checks_failed=("no_dangerous_calls",),
        )
    unresolved = any(effect.kind is EffectKind.UNRESOLVED for effect in findings.effects)
    return Verdict(
        status=Status.INCONCLUSIVE if unresolved else Status.VERIFIED,
        engine=ENGINE,
        message="part of the command cannot be resolved" if unresolved else "",
        effects=findings.effects,
        checks_passed=("no_dangerous_calls",),
        checks_failed=("command_resolved",) if unresolved else (),
    )
