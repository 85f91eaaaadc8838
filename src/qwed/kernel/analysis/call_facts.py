"""Facts that the action itself shows: the claim it asks about, and texts in it that no engine has read."""

from dataclasses import replace

from qwed.kernel.analysis.email_facts import email_facts
from qwed.kernel.analysis.executable_text import executable_texts_of, read_tool_name
from qwed.kernel.analysis.http_facts import http_facts
from qwed.kernel.case import Case
from qwed.kernel.tools import INFORMATION_ONLY_TOOLS, SHELL, TOOL, TOOLS
from qwed.model import NO_FACTS, EffectKind, Facts, Status, Verdict
from qwed.model.facts import ClaimFacts, CodeFacts, ShellFacts, SqlFacts, as_incomplete

_CLAIM_ENGINES = frozenset({"math", "logic", "fact", "stats", "image", "consensus", "legal", "finance", "ucp", "tax"})
_DECIDED = frozenset({Status.VERIFIED, Status.FAILED, Status.CORRECTED})
_UNREAD = {
    "sql": Facts(sql=SqlFacts(complete=False)),
    SHELL: Facts(shell=ShellFacts(complete=False)),
    "code": Facts(code=CodeFacts(complete=False)),
    TOOL: Facts(sql=SqlFacts(complete=False), shell=ShellFacts(complete=False), code=CodeFacts(complete=False)),
}
"""Facts of a text that is not read, by the analyzer that would read it; it may be anything where there is none."""


def facts_of(case: Case, verdict: Verdict) -> Facts:
    """Return the facts of the verdict, and those that the action itself shows."""
    resolved_action, facts = case.resolved_action, verdict.facts
    claim = _CLAIMS.get(verdict.engine)
    if claim is not None:
        return claim[verdict.status]
    if (resolved_action.custom or resolved_action.analyzer == TOOL) and (
        resolved_action.name not in INFORMATION_ONLY_TOOLS
    ):
        facts = _with_unread_texts(case, facts)
        http, email = http_facts(case, verdict), email_facts(case, verdict)
        if http is not None or email is not None:
            facts = replace(facts, http=http, email=email)
    if facts is not NO_FACTS and any(effect.kind is EffectKind.UNRESOLVED for effect in verdict.effects):
        facts = as_incomplete(facts)
    return facts


def _claims() -> dict[Status, Facts]:
    """Return the facts of a claim by the status that an engine gives it."""
    words = {status: status.on_agent_wire for status in Status}
    return {
        status: Facts(claim=ClaimFacts(complete=word in _DECIDED, status=word.value)) for status, word in words.items()
    }


_CLAIMS = dict.fromkeys(_CLAIM_ENGINES, _claims())


def _with_unread_texts(case: Case, facts: Facts) -> Facts:
    """Return the facts with an incomplete group for every statement, command or program that no engine reads."""
    resolved_action = case.resolved_action
    if resolved_action.analyzer != TOOL or not (case.action.parameters or case.action.query or case.action.code):
        return facts
    if resolved_action.tool is TOOLS.get(resolved_action.name):
        return facts  # it is known to execute nothing
    if resolved_action.custom:
        unread = [] if resolved_action.executable_text is None else [TOOL]
    else:
        texts = executable_texts_of(case.action, read_tool_name(resolved_action.name))
        unread = [text.analyzer for text in texts]
    for analyzer in unread:
        group = _UNREAD[analyzer]
        facts = replace(
            facts, sql=facts.sql or group.sql, shell=facts.shell or group.shell, code=facts.code or group.code
        )
    return facts
