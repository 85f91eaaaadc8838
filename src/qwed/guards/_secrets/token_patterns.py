"""Tokens recognised by their format alone, in one piece or split."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator

from qwed.guards._secrets.languages import positions
from qwed.guards._secrets.providers import VENDOR_PREFIXES
from qwed.guards._secrets.public_examples import is_public_example
from qwed.guards._secrets.token_rules import RULES_BY_ANCHOR, TOKEN_RULES, TokenRule
from qwed.guards._secrets.value_heuristics import is_uuid, is_very_random, is_wordy, looks_random
from qwed.guards._secrets.wallet_checksums import is_wallet_key
from qwed.guards.text_scan import UNSCANNED, TextFinding

MAX_SPLIT = 400
"""Prefixes in one text after which a split token is looked for; then the rest is reported as unscanned."""
_SHORTEST = 16
_LONG = 1_000


def _has_random_body(token: str) -> bool:
    if token.startswith(VENDOR_PREFIXES):
        prefix = max((prefix for prefix in VENDOR_PREFIXES if token.startswith(prefix)), key=len)
        return looks_random(token[len(prefix) :]) and not is_wordy(token[len(prefix) :])
    bodies = (token.partition("_")[2], token.partition("-")[2], re.split("[_.-]", token)[-1], token)
    return any(is_uuid(body) or is_very_random(body) for body in bodies)


def _is_no_name(token: str) -> bool:
    """Return True if the token is no name in words: it has a digit, or mixes the cases as words do not."""
    body = _SIGNS.sub("", token.partition("-")[2] or token)
    return has_digit(token) or not (body.islower() or body.isupper() or is_wordy(body))


_SIGNS = re.compile("[-_.]")
_CHECKS: dict[str, Callable[[str], bool]] = {
    "wallet_key": is_wallet_key,
    "vendor_key": _has_random_body,
    **dict.fromkeys(("gitlab_token", "alibaba_key", "tencent_key", "crates_token", "mandrill_key"), _is_no_name),
}
_DUMMY = re.compile(
    r"(?i)x{6,}|\*{3,}|\.{3,}|(?<![a-z])your(?:[_-]|$)|placeholder|redacted|[_-](?:goes[_-])?here(?![a-z0-9])"
    r"|(?:^|[_-])(?:dummy|fake|sample|changeme|insert|replace)[_-]|example(?:key)?"
)
"""Placeholders that documentation uses instead of a token."""


def long_runs(words: list[str]) -> str:
    """Return the words that are long enough to be a token; most texts have few."""
    return "\n".join([word for word in words if len(word) >= _SHORTEST])


def has_digit(text: str) -> bool:
    """Return True if the text contains a digit."""
    return _DIGIT.search(text) is not None


def random_words(runs: str) -> str:
    """Return the words with a digit, with many letters in a row, or with mixed cases after a sign: what is random is
    one of them, a name seldom."""
    return "\n".join(word for word in runs.split("\n") if _RANDOM.search(word)) if runs else ""


_RANDOM = re.compile("[0-9]|[A-Za-z]{24}|[-_](?=[A-Za-z]{0,6}[a-z][A-Z])[A-Za-z]{8}")
_DIGIT = re.compile("[0-9]")


def find_tokens(text: str, runs: str, random: str) -> Iterator[TextFinding]:
    """Yield every token of a known provider."""
    if not runs:
        return
    # A random token without a digit is rare, so that only the common ones are searched for in words without one.
    for rule in _present_rules(random) | _common_rules(runs):
        if _occurs(rule, runs if rule.is_distinct else random):
            yield from _real_tokens(rule, text)


def _present_rules(text: str) -> dict[TokenRule, None]:
    if not text:
        return {}
    return dict.fromkeys(rule for anchor in present_words(text, RULES_BY_ANCHOR) for rule in RULES_BY_ANCHOR[anchor])


def _common_rules(runs: str) -> dict[TokenRule, None]:
    return dict.fromkeys(rule for anchor in _SPLIT_ANCHORS if anchor in runs for rule in _SPLIT_RULES[anchor])


def present_words(runs: str, words: Iterable[str]) -> list[str]:
    """Return the words that occur in the text. This runs for every action, so it is one flat loop: a nested one was ten
    times slower."""
    if len(runs) > _LONG:
        # In a long text it is faster to check first if it contains every letter of the word.
        letters = frozenset(runs)
        words = [word for word in words if letters.issuperset(word)]
    return [word for word in words if word in runs]


def _real_tokens(rule: TokenRule, text: str) -> Iterator[TextFinding]:
    check = _CHECKS.get(rule.kind)
    for match in _matches(rule, text):
        if (check is None or check(match[0])) and not _is_dummy(rule, match[0]):
            yield TextFinding(rule.kind, *match.span(match.lastindex or 0))


def _occurs(rule: TokenRule, text: str) -> bool:
    return next(_matches(rule, text), None) is not None


def _matches(rule: TokenRule, text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a rule. A pattern is tried at every character unless a literal is found first, which is many
    times faster."""
    if not rule.begins_with_anchor or sum(map(text.count, rule.anchors)) > _MAX_PLACES:
        after = _AFTER_ANCHOR.get(rule.anchors[0])
        if after is None or after.search(text):
            yield from rule.pattern.finditer(text)
        return
    done = 0
    for position in positions(rule.anchors, text):
        match = rule.pattern.match(text, position) if position >= done else None
        if match:
            done = match.end()
            yield match


_MAX_PLACES = 2_000
_AFTER_ANCHOR = {
    "-": re.compile(r"-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f-])"),
    "-us": re.compile(r"-us\d"),
    "/": re.compile(r"/\d{13}"),
    ".": re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}"),
}
"""What follows the anchors that are in every text."""


def _is_dummy(rule: TokenRule, token: str) -> bool:
    """Return True if the token is a placeholder. A real one with a placeholder appended is still a token without it."""
    if is_public_example(token):
        return True
    rest = _DUMMY.sub("", token)
    return len(rest) < len(token) and rule.pattern.search(rest) is None


# Signs at which a token is split: the end of a line, of a string, of a quoted-printable line.
_JOINTS = re.compile(r"=\r?\n|\\[nrt]|</?\w{1,12}>|&#?\w{1,8};|\u2026|[\s\"'`+\\,;|&]")
_DASHES = re.compile("[-._\u00b7\u2010-\u2015]")
_HYPHENS = re.compile(r"[-\u00ad\u2010]\s{0,4}\n\s{0,8}|" + _JOINTS.pattern)
"""Joints, and the hyphen with which a word is divided at the end of a line."""
_WINDOW = 300


def find_split_tokens(text: str) -> Iterator[TextFinding]:
    """Yield the tokens whose prefix is whole and whose rest is interrupted by blanks, line ends, quotes or dashes."""
    begin = 0
    for tried, (position, anchor) in enumerate(sorted(_anchor_positions(text))):
        if tried == MAX_SPLIT:
            yield TextFinding(UNSCANNED, position, len(text))
            return
        end = _end_of_split(anchor, text, position) if position >= begin else 0
        if end:
            yield TextFinding(_SPLIT_RULES[anchor][0].kind, position, end)
            begin = end


def _anchor_positions(text: str) -> Iterator[tuple[int, str]]:
    for anchor in [anchor for anchor in _SPLIT_ANCHORS if anchor in text]:
        position = text.find(anchor)
        while position >= 0:
            yield position, anchor
            position = text.find(anchor, position + 1)


# Only the most common tokens: the whole text is searched, because the parts of a token are short words.
_SPLIT_ANCHORS_TEXT = """
AKIA ASIA AIza ghp_ gho_ ghs_ github_pat_ glpat- xoxb- xoxp- sk- sk_live_ sk_test_ rk_live_ rk_test_ npm_ hf_
dop_v1_ dckr_ hvs. SG. shpat_ eyJ qwed_ pypi-AgE
"""
_SPLIT_ANCHORS = tuple(_SPLIT_ANCHORS_TEXT.split())
_SPLIT_RULES = {
    prefix: tuple(
        rule for rule in TOKEN_RULES if any(prefix.startswith(word) or word.startswith(prefix) for word in rule.anchors)
    )
    for prefix in _SPLIT_ANCHORS
}
_DISTINCT_ANCHORS = tuple(
    anchor for anchor, rules in RULES_BY_ANCHOR.items() if any(rule.is_distinct for rule in rules)
)


def find_disguised_tokens(text: str, random: str, words: frozenset[str]) -> Iterator[TextFinding]:
    """Yield the tokens that are written backwards, in ROT13, in the other case, or in pieces of equal length."""
    bodies = "\n".join(
        word for word in random.split("\n") if _BODY.search(word) and not _INTEGRITY.search(word) and _varies(word)
    )
    if bodies:
        yield from _find_backwards(text, bodies[::-1])
        for change in (_rotate, str.swapcase):
            changed = change(bodies)
            for rule in _distinct_rules(changed):
                if _occurs(rule, changed):
                    yield from _real_tokens(rule, change(text))
    yield from _find_spaced(text, random, words)
    for match in _GROUPED.finditer(random):
        joined = match[0].replace("-", "")
        finding = next(find_tokens(joined, joined, joined), None)
        start = text.find(match[0])
        if finding is not None and start >= 0:
            yield TextFinding(finding.kind, start, start + len(match[0]))


def _varies(word: str) -> bool:
    return len(word) < _LONG or len(frozenset(word)) > _MIN_PIECES


def _rotate(text: str) -> str:
    return codecs.encode(text, "rot13")


def _find_spaced(text: str, random: str, words: frozenset[str]) -> Iterator[TextFinding]:
    """Yield the tokens with a sign, or a quote and a comma, after each character, or in words of two or three."""
    short = [word for word in words if len(word) < _MAX_PIECE]
    is_spelled = sum(sum(map(str.isalnum, word)) == 1 for word in short) >= _MIN_PIECES or _SINGLES.search(random)
    for match in _SPACED.finditer(text) if is_spelled else ():
        joined = match[0][:: 1 + len(match[1])]
        finding = next(find_tokens(joined, joined, joined), None)
        if finding is not None:
            yield TextFinding(finding.kind, *match.span())
    mixed = sum(_MIXED_PIECE.fullmatch(word) is not None for word in short)
    is_paired = mixed >= (_MIN_PIECES if len(text) > _VERY_LONG else _MIN_PIECES // 3)
    for match in _PAIRS.finditer(text) if is_paired else ():
        joined = "".join(match[0].split())
        finding = next(find_tokens(joined, joined, joined), None)
        if finding is not None:
            yield TextFinding(finding.kind, *match.span())


_VERY_LONG = 1 << 16
_MIXED_PIECE = re.compile(r"(?=[A-Za-z]{1,2}[0-9]|[0-9]{1,2}[A-Za-z]|[A-Za-z]?[a-z][A-Z])\w{2,3}")
_MAX_PIECE, _MIN_PIECES = 6, 6
_INTEGRITY = re.compile("sha(?:256|384|512)-[A-Za-z0-9+/]{43,86}={0,2}")
_GROUPED = re.compile(r"(?<![\w-])(?=[\w-]{0,9}_)(?:\w{3,6}-){4,40}\w{1,6}(?![\w-])")
"""Tokens in groups of a few letters."""
_BODY = re.compile("[A-Za-z0-9]{16}")


def _find_backwards(text: str, backwards: str) -> Iterator[TextFinding]:
    for rule in _distinct_rules(backwards):
        if _occurs(rule, backwards):
            for kind, start, end in _real_tokens(rule, text[::-1]):
                yield TextFinding(kind, len(text) - end, len(text) - start)


def _distinct_rules(text: str) -> dict[TokenRule, None]:
    return dict.fromkeys(rule for anchor in present_words(text, _DISTINCT_ANCHORS) for rule in RULES_BY_ANCHOR[anchor])


_SINGLES = re.compile(r"\W\w\W{1,4}\w\W{1,4}\w\W{1,4}\w\W{1,4}\w\W")
_SPACED = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9_]([^A-Za-z0-9]{1,4})(?:[A-Za-z0-9_.-]\1){14,600}[A-Za-z0-9_]")
_PAIRS = re.compile(r"(?<!\S)\S{2,3}(?:\s\S{2,3}){7,200}(?:\s\S)?(?!\S)")


def _end_of_split(anchor: str, text: str, position: int) -> int:
    """Return the end of the token that begins here if its parts are joined, or 0."""
    if position and text[position - 1].isalnum():
        return 0
    whole = (rule.pattern.match(text, position) for rule in _SPLIT_RULES[anchor])
    if any(match and len(match[0]) >= _SHORTEST for match in whole):
        return 0
    body = text[position + len(anchor) : position + _WINDOW]
    for joints in (_JOINTS, _DASHES, _HYPHENS):
        joined = anchor + joints.sub("", body)
        for rule in _SPLIT_RULES[anchor]:
            match = rule.pattern.match(joined)
            end = _end_in(body, joints, match.end() - len(anchor)) if match else 0
            if match and (_is_random(match[0][len(anchor) :]) or _INNER_DIGITS.search(body, 0, end)):
                return position + len(anchor) + end
    part = _PART.match(body)
    is_part = part is not None and anchor in _FIXED and _is_random(part[0]) and not _DUMMY.search(part[0])
    return position + len(anchor) + part.end() if part and is_part else 0


_INNER_DIGITS = re.compile("[A-Z]{2}[0-9]{1,4}[A-Z]{2}")
"""Digits inside a part in capitals, as no word has them."""
_PART = re.compile(r"[A-Za-z0-9]{12,}")
_FIXED = frozenset({"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "sk_live_", "rk_live_", "shpat_", "dckr_"})
"""Prefixes after which a part of a token is recognised, because nothing else begins with them."""


def _is_random(body: str) -> bool:
    return looks_random(body) and not is_wordy(body)


def _end_in(body: str, joints: re.Pattern[str], length: int) -> int:
    """Return the index in the body after so many characters that are not joints."""
    position = 0
    while position < len(body) and length:
        joint = joints.match(body, position)
        position = joint.end() if joint else position + 1
        length -= joint is None
    return position
