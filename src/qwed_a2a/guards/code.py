"""Code guard: code sent to another agent may compute and read plain files, and nothing else.

First the dangerous patterns of the specification, then the code engine on the same text. A message is not weighed by
trust and risk as an action is, so only code of low risk for every agent passes: a violation, any effect but a plain
read, and code that cannot be parsed or whose effects are unknown are refused.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.engines import code_verdict
from qwed.engines.protocol import EngineRequest
from qwed.engines.verdict_cache import VerdictRequest, VerdictSource
from qwed.guards.code_findings import EFFECT_DESCRIPTIONS, LANGUAGE_ALIASES, LANGUAGES, CodeFindings
from qwed.guards.python_code import findings
from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed.model import EffectKind, Risk, Status, Verdict, risk_of
from qwed_a2a.guards.patterns import patterns_in

_ENGINE = EngineName.CODE_GUARD
MAX_INLINE = 1_536
"""Length limit in characters for Python that is analysed in this process: a few ms for hostile input. Longer code and
other languages go to the engine workers."""
MAX_SHOWN = 200
MAX_LISTED = 20
_CLEAN = "the code only computes and reads"
_UNKNOWN = "the code only computes and reads, as far as its names can be resolved"
_PROGRAMS = frozenset({"python", "javascript", "typescript"})
"""Languages in which an unknown name is no sign of danger."""
_PLAIN = MessageVerdict(True, _ENGINE, _CLEAN, {"language": "python"})
_NOTHING = CodeFindings()


class _CodePayload(NamedTuple):
    text: str
    language: str

    def analyze_inline(self) -> CodeFindings | None:
        """Return the effects of the code if that is fast enough to run inline, else None."""
        return findings(self.text) if self.language == "python" and len(self.text) <= MAX_INLINE else None


async def check_code(payload: Mapping[str, Any], engines: VerdictSource) -> MessageVerdict:
    """Return a pass if the code of a payload may be delivered, else the reason."""
    code = _parse_payload(payload)
    if isinstance(code, str):
        return MessageVerdict(False, _ENGINE, code)
    patterns, findings_inline = patterns_in(code.text), code.analyze_inline()
    if patterns:
        # Refused even if no engine worker is available.
        return _pattern_result(code, patterns, findings_inline)
    if findings_inline == _NOTHING:
        return _PLAIN
    verdict = (
        code_verdict.verdict_on_findings(findings_inline, code.language)
        if findings_inline is not None
        else await _ask_engine(code, engines)
    )
    return _verdict_result(code, verdict)


def _parse_payload(payload: Mapping[str, Any]) -> _CodePayload | str:
    code, declared = payload.get("code"), payload.get("language")
    if not isinstance(code, str) or not code.strip():
        return "there is no code to check, send it as text in `code`"
    name = "python" if declared is None else declared.strip().lower() if isinstance(declared, str) else ""
    language = LANGUAGE_ALIASES.get(name, name)
    if language not in LANGUAGES:
        return f"unknown language `{_printable(str(declared))}`, known are {', '.join(LANGUAGES)}"
    return _CodePayload(code, language)


def _pattern_result(
    code: _CodePayload, patterns: tuple[str, ...], findings_inline: CodeFindings | None
) -> MessageVerdict:
    """Return the refusal for a dangerous pattern. It may be harmless, as in `re.compile(`: only violations that the
    engine finds cost trust."""
    reason = f"dangerous pattern `{patterns[0]}`: leave it out, also in comments and texts"
    details = {"language": code.language, "patterns": list(patterns)}
    return MessageVerdict(
        False, _ENGINE, reason, details, violation=findings_inline is not None and bool(findings_inline.violations)
    )


async def _ask_engine(code: _CodePayload, engines: VerdictSource) -> Verdict:
    request = EngineRequest(code=code.text, parameters={"language": code.language})
    digest = hashlib.sha256(f"{code.language}\n{code.text}".encode("utf-8", "surrogatepass")).hexdigest()
    verdict = engines.ask(VerdictRequest("", "code", digest, request))
    return verdict if isinstance(verdict, Verdict) else await verdict


def _verdict_result(code: _CodePayload, verdict: Verdict) -> MessageVerdict:
    if verdict.verified and risk_of(verdict.effects) is Risk.LOW:
        return MessageVerdict(True, _ENGINE, _CLEAN, {"language": code.language})
    if _has_only_unknown_names(code, verdict):
        names = [_printable(name) for name in verdict.result["unresolved"][:MAX_LISTED]]
        return MessageVerdict(True, _ENGINE, _UNKNOWN, {"language": code.language, "unresolved": names})
    return MessageVerdict(False, _ENGINE, _reason(verdict), _details(code, verdict), violation=bool(verdict.violations))


def _has_only_unknown_names(code: _CodePayload, verdict: Verdict) -> bool:
    """Return True if nothing speaks against a program except names and modules that cannot be resolved."""
    known = tuple(effect for effect in verdict.effects if effect.kind is not EffectKind.UNRESOLVED)
    return (
        code.language in _PROGRAMS
        and verdict.status is Status.INCONCLUSIVE
        and not verdict.result.get("lookups")
        and risk_of(known) is Risk.LOW
    )


def _reason(verdict: Verdict) -> str:
    if not verdict.verified:
        return _printable(verdict.message)
    gravest = max(verdict.effects, key=lambda effect: effect.risk)
    return f"the code {EFFECT_DESCRIPTIONS[gravest.kind]}: it may only compute and read"


def _details(code: _CodePayload, verdict: Verdict) -> dict[str, Any]:
    """Return the findings without their targets: a URL or a path may contain a secret."""
    issues = [{"type": issue["type"], "line": issue["line_number"]} for issue in verdict.result.get("issues", ())]
    return {
        "language": code.language,
        "status": verdict.status.value,
        "issues": issues[:MAX_LISTED],
        "effects": sorted({effect.kind.value for effect in verdict.effects}),
    }


def _printable(text: str) -> str:
    """Return text of a message as an answer may quote it."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text[:MAX_SHOWN])
