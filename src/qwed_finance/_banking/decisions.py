"""Whether a reasoning ends in a yes or a no: `approved`, `insufficient funds`."""

import re

from qwed.packs.result import Unreadable

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
_ALONE = re.compile(r"\W{0,5}(?P<word>yes|no)\b", re.IGNORECASE)
_IF = re.compile(r"\b(?:if|unless|would have|might|could)\b[^.;\n]{0,80}\Z", re.IGNORECASE)


def decision_in(text: str) -> bool | None:
    """What is decided; None where nothing is, Unreadable where both are."""
    found = {
        bool(each["yes"]) is not bool(each["not"]) for each in _VERDICT.finditer(text) if not _conditional(text, each)
    }
    alone = _ALONE.match(text)
    if alone:
        found.add(alone["word"].lower() == "yes")
    if len(found) > 1:
        raise Unreadable("`llm_output` says yes and no: write one decision, such as `approved` or `declined`")
    return found.pop() if found else None


def _conditional(text: str, match: re.Match[str]) -> bool:
    return _IF.search(text[max(0, match.start() - 100) : match.start()]) is not None
