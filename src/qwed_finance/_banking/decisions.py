"""Detection of a yes or no decision in a reasoning: `approved`, `insufficient funds`."""

import re

from qwed.packs.result import UnreadableInputError

_YES = (
    r"approved?|approves|eligible|qualif(?:y|ies|ied)|sufficient|enough|affordable|allowed|permitted|goes through"
    r"|succeeds|successful|accepted|meets|passes|compliant|within"
)
_NO = (
    r"denied|declined?|declines|reject(?:ed|s)?|refused|ineligible|insufficient|exceed(?:s|ed)?|fails|failed|overdraws?"
    r"|overdrawn|unaffordable|non-compliant|beyond"
)
_VERDICT = re.compile(
    rf"(?P<not>\b(?:not|never|no|cannot|can't|isn't|aren't|doesn't|don't|won't|without)\s+(?:[a-z]+\s+){{0,2}}?)?"
    rf"\b(?:(?P<yes>{_YES})|(?P<no>{_NO}))\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(r"\W{0,5}(?P<word>yes|no)\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|unless|would have|might|could)\b[^.;\n]{0,80}\Z", re.IGNORECASE)


def find_decision(text: str) -> bool | None:
    """Return the decision, or None without one. Raise UnreadableInputError if there are both."""
    decisions = {
        bool(match["yes"]) is not bool(match["not"])
        for match in _VERDICT.finditer(text)
        if not _is_conditional(text, match)
    }
    short_answer = _YES_OR_NO.match(text)
    if short_answer:
        decisions.add(short_answer["word"].lower() == "yes")
    if len(decisions) > 1:
        raise UnreadableInputError(
            "`llm_output` contains both yes and no: write one decision, such as `approved` or `declined`"
        )
    return decisions.pop() if decisions else None


def _is_conditional(text: str, match: re.Match[str]) -> bool:
    return _CONDITION.search(text[max(0, match.start() - 100) : match.start()]) is not None
