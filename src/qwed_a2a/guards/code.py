"""Code Guard: code that another agent is asked to run may compute and read plain files, and nothing else.

First the patterns of the document, then what the code engine says of the same text. A message is not weighed by trust
and risk as an action is, so what passes is what is low risk for anybody: a violation, any effect but a plain read, and
whatever cannot be read or is not known are refused.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.engines import programs
from qwed.engines.protocol import EngineRequest
from qwed.engines.verdicts import Asks, Question
from qwed.guards.code_words import DEEDS, LANGUAGE_ALIASES, LANGUAGES, CodeFindings
from qwed.guards.python_code import findings, findings_at_a_glance
from qwed.words import Risk, Verdict, risk_of
from qwed_a2a.finding import Finding
from qwed_a2a.guards.patterns import patterns_in

MAX_PARSED, MAX_FOLLOWED = 8_192, 1_536
"""Characters of Python that are parsed, and whose names are followed, in the asking process: a few milliseconds where
somebody means ill. What is longer, and other languages, are for the workers."""
MAX_SHOWN = 200
MAX_LISTED = 20
_CLEAN = "the code only computes and reads"
_PLAIN = Finding(True, _CLEAN, {"language": "python"})
_NOTHING = CodeFindings()


class _Code(NamedTuple):
    text: str
    language: str

    def seen_at_once(self) -> CodeFindings | None:
        """What the code would do, where telling that takes so little time that nobody is kept waiting."""
        if self.language != "python" or len(self.text) > MAX_PARSED:
            return None
        return (findings if len(self.text) <= MAX_FOLLOWED else findings_at_a_glance)(self.text)


async def check_code(payload: Mapping[str, Any], engines: Asks) -> Finding:
    """Whether the code of a payload may go on to whoever is asked to run it."""
    asked = _read(payload)
    if isinstance(asked, str):
        return Finding(False, asked)
    patterns, found = patterns_in(asked.text), asked.seen_at_once()
    if patterns:
        # By itself, whether or not a worker is to be had.
        return _dangerous(asked, patterns, found)
    if found == _NOTHING:
        return _PLAIN
    verdict = programs.judged(found, asked.language) if found is not None else await _judged(asked, engines)
    return _finding(asked, verdict)


def _read(payload: Mapping[str, Any]) -> _Code | str:
    code, asked = payload.get("code"), payload.get("language")
    if not isinstance(code, str) or not code.strip():
        return "there is no code to check, send it as text in `code`"
    name = "python" if asked is None else asked.strip().lower() if isinstance(asked, str) else ""
    language = LANGUAGE_ALIASES.get(name, name)
    if language not in LANGUAGES:
        return f"unknown language `{_shown(str(asked))}`, known are {', '.join(LANGUAGES)}"
    return _Code(code, language)


def _dangerous(asked: _Code, patterns: tuple[str, ...], found: CodeFindings | None) -> Finding:
    """A pattern may be meant well, as in `re.compile(`; only what the engine sees costs the sender trust."""
    reason = f"dangerous pattern `{patterns[0]}`: leave it out, also in comments and texts"
    details = {"language": asked.language, "patterns": list(patterns)}
    return Finding(False, reason, details, violation=found is not None and bool(found.violations))


async def _judged(asked: _Code, engines: Asks) -> Verdict:
    request = EngineRequest(code=asked.text, parameters={"language": asked.language})
    digest = hashlib.sha256(f"{asked.language}\n{asked.text}".encode("utf-8", "surrogatepass")).hexdigest()
    verdict = engines.ask(Question("", "code", digest, request))
    return verdict if isinstance(verdict, Verdict) else await verdict


def _finding(asked: _Code, verdict: Verdict) -> Finding:
    if verdict.verified and risk_of(verdict.effects) is Risk.LOW:
        return Finding(True, _CLEAN, {"language": asked.language})
    return Finding(False, _reason(verdict), _details(asked, verdict), violation=bool(verdict.violations))


def _reason(verdict: Verdict) -> str:
    if not verdict.verified:
        return _shown(verdict.message)
    gravest = max(verdict.effects, key=lambda effect: effect.risk)
    return f"the code {DEEDS[gravest.kind]}: it may only compute and read"


def _details(asked: _Code, verdict: Verdict) -> dict[str, Any]:
    """What was found, without the targets: an address or a path may hold a secret."""
    issues = [{"type": issue["type"], "line": issue["line_number"]} for issue in verdict.result.get("issues", ())]
    return {
        "language": asked.language,
        "status": verdict.status.value,
        "issues": issues[:MAX_LISTED],
        "effects": sorted({effect.kind.value for effect in verdict.effects}),
    }


def _shown(text: str) -> str:
    """Text of a message as an answer may repeat it."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text[:MAX_SHOWN])
