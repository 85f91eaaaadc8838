"""Loader of the token rules: our own, and those generated from gitleaks (data/)."""

import json
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from qwed.guards._secrets.providers import PROVIDERS

_DATA = files("qwed.guards._secrets") / "data"


class TokenRule(NamedTuple):
    """Form of a provider's token; group 1, or the whole match, is the secret."""

    kind: str
    anchors: tuple[str, ...]
    """Literals without which the pattern cannot match; searching for them is very fast."""
    source: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled pattern. Most rules are never needed, so they are compiled when an anchor is present."""
        return _compiled(self.source)

    @property
    def begins_with_anchor(self) -> bool:
        """Return True if every match begins with an anchor, so that only those places are looked at."""
        return self.source in _BEGINNING

    @property
    def is_distinct(self) -> bool:
        """Return True if every token begins with an anchor that is long enough to be recognised by itself."""
        return self.source in _DISTINCT


class ValueRule(NamedTuple):
    """Form of a value that is a secret beside the name of its vendor."""

    kind: str
    names: tuple[str, ...]
    source: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled pattern of the whole value."""
        return _compiled(self.source)


_compiled = cache(re.compile)


def _rows(name: str, words: str) -> list[tuple[str, tuple[str, ...], str]]:
    rows = []
    for row in json.loads((_DATA / name).read_text(encoding="utf-8"))["rules"]:
        if sorted(row) != sorted(("kind", words, "pattern")) or not row[words] or not all(row[words]):
            raise ValueError(f"`{name}` has a malformed rule `{row}`; generate it with scripts/secret_rules.py")
        rows.append((row["kind"], tuple(row[words]), row["pattern"]))
    return rows


TOKEN_RULES = tuple(
    TokenRule(kind, tuple(anchors), source)
    for kind, anchors, source in (
        *((kind, tuple(anchors.split()), source) for kind, anchors, source in PROVIDERS),
        *_rows("gitleaks_tokens.json", "anchors"),
    )
)
"""Every token rule. Each repetition is bounded and repeats one class, so a scan is linear."""

_MIN_DISTINCT = 3
_FIRST = re.compile(r"(?:\(\?<!\[[^\]]*\]\))?(?P<first>\(\?:|\[[^\]]+\](?![{+*])|\w)")


def _begins_with_anchor(rule: TokenRule) -> bool:
    match = _FIRST.match(rule.source)
    if match is None or min(map(len, rule.anchors)) < _MIN_DISTINCT:
        return False
    first = match["first"]
    return all(anchor[0].isalnum() and (first == "(?:" or re.match(first, anchor)) for anchor in rule.anchors)


_DISTINCT = frozenset(rule.source for rule in TOKEN_RULES if _begins_with_anchor(rule))
_LOOKBEHIND = re.compile(r"\(\?<!\[[^\]]*\]\)|\\b")


def _is_literal_start(rule: TokenRule) -> bool:
    return len(rule.anchors) == 1 and rule.source[_after_lookbehind(rule.source) :].startswith(rule.anchors[0])


def _after_lookbehind(source: str) -> int:
    match = _LOOKBEHIND.match(source)
    return match.end() if match else 0


_BEGINNING = _DISTINCT | {rule.source for rule in TOKEN_RULES if _is_literal_start(rule)}

RULES_BY_ANCHOR = {
    anchor: tuple(rule for rule in TOKEN_RULES if anchor in rule.anchors)
    for anchor in dict.fromkeys(anchor for rule in TOKEN_RULES for anchor in rule.anchors)
}


@cache
def vendor_rules() -> dict[str, tuple[ValueRule, ...]]:
    """Return the rules for values beside the name of a vendor, by that name in lower case."""
    rules = [ValueRule(*row) for row in _rows("gitleaks_values.json", "names")]
    names = sorted({name for rule in rules for name in rule.names})
    return {name: tuple(rule for rule in rules if name in rule.names) for name in names}
