"""Write the rules of the secrets guard from a gitleaks configuration.

    python scripts/secret_rules.py gitleaks.toml VERSION

The facts of each rule (names, prefixes, character classes, lengths) become a pattern whose every repetition is bounded
and repeats one character class. Rules that are not of that form are skipped, and printed.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

DATA = Path(__file__).resolve().parents[1] / "src" / "qwed" / "guards" / "_secrets" / "data"

_MAX_LENGTH = 2_000
_MIN_PREFIX = 4
_MAX_NAMES = 12
_OPERATOR = r"(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)"
_NAMED_RULE = re.compile(
    r"(?s)(?:\(\?i\))?\[\\w\.-\]\{0,50\}\?\((?:\?:|\?i:\[\\w\.-\]\{0,50\}\?\(\?:)(?P<names>.*?)"
    r"\)\(\?:\[ \\t\\w\.-\]\{0,20\}\).*?"
    + re.escape(_OPERATOR)
    + r"\[\\x60'\"\\s=\]\{0,5\}\((?P<value>.*?)\)\(\?:\[\\x60"
)
# Identifiers and publishable keys are meant to be seen.
_PUBLIC = re.compile(r"client-id|access-id|-pub-|-pub|public|user-api-id|mapbox-api-token")
# What the readers of syntax and of key blocks find in more forms, and what is no token of its own.
_SKIPPED = frozenset(
    [
        "aws-access-token",
        "curl-auth-header",
        "curl-auth-user",
        "facebook-access-token",
        "freemius-secret-key",
        "generic-api-key",
        "hashicorp-tf-password",
        "jwt",
        "jwt-base64",
        "kubernetes-secret-yaml",
        "microsoft-teams-webhook",
        "nuget-config-password",
        "pkcs12-file",
        "private-key",
        "sidekiq-secret",
        "sidekiq-sensitive-url",
        "slack-webhook-url",
        "dropbox-api-token",
        "confluent-access-token",
        "linkedin-client-secret",
    ]
)
# Ours have looser lengths: providers change them.
_WIDER = [
    "1password-service",
    "age-secret",
    "alibaba-access",
    "anthropic",
    "aws-amazon-bedrock-api-key-long",
    "doppler",
    "facebook-page",
    "flutterwave",
    "flyio",
    "github-fine",
    "gitlab-c",
    "gitlab-d",
    "gitlab-f",
    "gitlab-i",
    "gitlab-k",
    "gitlab-o",
    "gitlab-p",
    "gitlab-ru",
    "gitlab-sc",
    "heroku-api-key-v2",
    "huggingface",
    "linear-api",
    "new-relic",
    "notion",
    "openai",
    "perplexity",
    "postman",
    "pypi",
    "sendgrid",
    "sendinblue",
    "sentry-user",
    "shopify",
    "slack",
    "square-access",
    "typeform",
    "vault",
    "dynatrace",
]
_VENDOR_NAMES = {
    "cohere-api-token": ("cohere",),
    "nytimes-access-token": ("nytimes", "newyorktimes"),
    "snyk-api-token": ("snyk",),
    "sonar-api-token": ("sonar",),
    "mailchimp-api-key": ("mailchimp",),
    "new-relic-user-api-key": ("newrelic", "new_relic", "new-relic"),
}
_CUT = {"sourcegraph-access-token": "|[a-fA-F0-9]{40}"}
"""Parts of a rule without any shape: forty hexadecimal digits are the digest of a commit."""
_KIND_WORDS = ("token", "key", "secret", "password", "cookie", "webhook")
_VENDOR = re.compile(r"[a-z0-9]+")
_VENDOR_KINDS = {
    "1password": "onepassword_token",
    "age": "age_key",
    "artifactory": "jfrog_token",
    "gcp": "google_key",
    "hashicorp": "terraform_token",
    "heroku": "heroku_key",
    "linear": "linear_key",
    "new": "newrelic_key",
    "openai": "openai_key",
    "perplexity": "perplexity_key",
    "postman": "postman_key",
    "rubygems": "rubygems_key",
    "sendgrid": "sendgrid_key",
    "sendinblue": "brevo_key",
    "stripe": "stripe_key",
    "anthropic": "anthropic_key",
    "mailgun": "mailgun_key",
    "easypost": "easypost_key",
    "flutterwave": "flutterwave_key",
    "twilio": "twilio_key",
    "mailchimp": "mailchimp_key",
    "alibaba": "alibaba_key",
}


_COMMON_PREFIXES = ("live_", "test_")
_HEXADECIMAL = re.compile("[0-9a-f]+")


class _UnsupportedError(Exception):
    """A rule that has no bounded, linear form."""


class _Rule(NamedTuple):
    kind: str
    words: tuple[str, ...]
    """Anchors of a token, or names of a vendor."""
    pattern: str


def main(source: str, version: str) -> None:
    """Read the configuration and write the data files."""
    rules = tomllib.loads(Path(source).read_text())["rules"]
    tokens: list[_Rule] = []
    values: list[_Rule] = []
    for rule in rules:
        if rule["id"] in _SKIPPED or rule["id"].startswith(tuple(_WIDER)) or _PUBLIC.search(rule["id"]):
            print("skipped", rule["id"])
            continue
        try:
            _convert(rule, tokens, values)
        except _UnsupportedError as error:
            print("skipped", rule["id"], error)
    _write("gitleaks_tokens.json", version, "anchors", tokens)
    _write("gitleaks_values.json", version, "names", values)


def _convert(rule: dict[str, Any], tokens: list[_Rule], values: list[_Rule]) -> None:
    text = rule["regex"].replace(_CUT.get(rule["id"], "\0"), "")
    kind = _kind(rule["id"])
    named = _NAMED_RULE.match(text)
    if named is None:
        tokens.append(_token(kind, text))
        return
    flag = "(?i)" if text.startswith("(?i)") else ""
    value = _parse(flag + named["value"])
    prefixes = _prefixes(value)
    if all(len(prefix) >= _MIN_PREFIX and prefix not in _COMMON_PREFIXES for prefix in prefixes):
        tokens.append(_token(kind, flag + rf"\b({named['value']})"))
        return
    names = _VENDOR_NAMES.get(rule["id"]) or tuple(sorted({word.lower() for word in _expand(_parse(named["names"]))}))
    values.append(_Rule(kind, names, _render(value, ignore_case=bool(flag))))


def _kind(identifier: str) -> str:
    vendor = _VENDOR.match(identifier)
    if vendor and vendor[0] in _VENDOR_KINDS:
        return _VENDOR_KINDS[vendor[0]]
    word = next((word for word in _KIND_WORDS if word in identifier), "token")
    return f"{vendor[0] if vendor else identifier}_{word}"


def _token(kind: str, text: str) -> _Rule:
    tree = list(_parse(text))
    bounded = bool(tree) and tree[0] == (codes.AT, codes.AT_BOUNDARY)
    core, ignore_case = _core(tree)
    prefixes = _prefixes(core)
    distinct = all(len(prefix) >= _MIN_PREFIX for prefix in prefixes)
    longer = distinct and not any(_HEXADECIMAL.fullmatch(prefix) for prefix in prefixes)
    pattern = _render(_lengthen(core) if longer else core, ignore_case=ignore_case)
    start = "(?<![A-Za-z0-9])" if bounded or not distinct else ""
    anchors = prefixes if distinct else _inner_literals(core) or prefixes
    if any(len(anchor) < 2 for anchor in anchors):
        raise _UnsupportedError("no literal to search for")
    return _Rule(kind, tuple(sorted(set(anchors))), f"{start}{pattern}(?![A-Za-z0-9])")


def _core(tree: list[Any]) -> tuple[list[Any], bool]:
    """Return the token without the text around it: the first group that captures, or everything."""
    for operator, argument in tree:
        if operator is codes.SUBPATTERN:
            group, added, _removed, inner = argument
            ignore_case = bool(added & re.IGNORECASE)
            if group is not None:
                return list(inner), ignore_case
            if len(tree) == 1:
                inner_core, inner_flag = _core(list(inner))
                return inner_core, ignore_case or inner_flag
            if any(item[0] is codes.SUBPATTERN and item[1][0] is not None for item in inner):
                return _core(list(inner))[0], ignore_case
    return [item for item in tree if item[0] is not codes.AT], False


def _parse(text: str) -> list[Any]:
    text = text.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z")
    return list(parser.parse(_scope_flags(text)))


def _scope_flags(text: str) -> str:
    """Turn `(?i)` into a group that ends with the group around it, as Go reads it."""
    out: list[str] = []
    pending = [0]
    position = 0
    while position < len(text):
        unit = _unit(text, position)
        position += len(unit)
        if unit == "(?i)":
            out.append("(?i:")
            pending[-1] += 1
            continue
        if unit == ")":
            out.append(")" * pending.pop())
        elif unit.startswith("("):
            pending.append(0)
        out.append(unit)
    return "".join(out) + ")" * pending.pop()


_UNIT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?i\)|.", re.DOTALL)


def _unit(text: str, position: int) -> str:
    match = _UNIT.match(text, position)
    if match is None:
        raise _UnsupportedError("cannot be read")
    return match[0]


def _lengthen(core: list[Any]) -> list[Any]:
    """Let the last class of a token with a prefix of its own repeat more often: providers make their tokens longer."""
    operator, argument = core[-1]
    if operator is codes.SUBPATTERN and len(core) == 1:
        return [(operator, (*argument[:3], _lengthen(list(argument[3]))))]
    if operator is not codes.MAX_REPEAT or argument[0] != argument[1]:
        return core
    return [*core[:-1], (operator, (argument[0], min(4 * argument[0], _MAX_LENGTH), argument[2]))]


def _render(items: Iterable[Any], *, ignore_case: bool) -> str:
    return "".join(_render_item(item, ignore_case) for item in items)


def _render_item(item: Any, ignore_case: bool) -> str:
    operator, argument = item
    if operator is codes.LITERAL:
        return _escape(chr(argument), ".^$*+?{}[]()|\\")
    if operator is codes.IN:
        return _class(argument, ignore_case)
    if operator in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        return _repeat(argument, ignore_case)
    if operator is codes.SUBPATTERN:
        _group, added, removed, inner = argument
        return _render(inner, ignore_case=(ignore_case or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE)
    if operator is codes.BRANCH:
        return f"(?:{'|'.join(_render(branch, ignore_case=ignore_case) for branch in argument[1])})"
    if operator is codes.AT:
        return ""
    raise _UnsupportedError(str(operator))


def _repeat(argument: Any, ignore_case: bool) -> str:
    low, high, inner = argument
    single = len(inner) == 1 and inner[0][0] in (codes.IN, codes.LITERAL)
    if not single and int(high) > 3:
        raise _UnsupportedError("repeats a group")
    high = min(max(4 * low, 64), _MAX_LENGTH) if high is codes.MAXREPEAT else min(int(high), _MAX_LENGTH)
    bounds = "?" if (low, high) == (0, 1) else f"{{{low}}}" if low == high else f"{{{low},{high}}}"
    body = _render(inner, ignore_case=ignore_case)
    return (body if single else f"(?:{body})") + bounds


def _class(items: Any, ignore_case: bool) -> str:
    characters: set[int] = set()
    for operator, argument in items:
        if operator is codes.LITERAL:
            characters.add(argument)
        elif operator is codes.RANGE:
            characters.update(range(argument[0], argument[1] + 1))
        elif operator is codes.CATEGORY and argument in _CATEGORIES:
            characters.update(_CATEGORIES[argument])
        else:
            raise _UnsupportedError(f"class {operator}")
    if ignore_case:
        characters |= {ord(chr(code).swapcase()) for code in characters}
    return f"[{_ranges(sorted(characters))}]"


_DIGITS = range(ord("0"), ord("9") + 1)
_WORD = [code for code in range(128) if chr(code).isalnum() or chr(code) == "_"]
_CATEGORIES: dict[Any, Iterable[int]] = {codes.CATEGORY_DIGIT: _DIGITS, codes.CATEGORY_WORD: _WORD}


def _ranges(characters: list[int]) -> str:
    parts: list[str] = []
    start = 0
    for index, code in enumerate(characters):
        if index + 1 < len(characters) and characters[index + 1] == code + 1:
            continue
        first, last = _escape(chr(characters[start]), "]^-\\"), _escape(chr(code), "]^-\\")
        parts.append(first if index == start else f"{first}{last}" if index == start + 1 else f"{first}-{last}")
        start = index + 1
    return "".join(parts)


def _escape(character: str, special: str) -> str:
    return f"\\{character}" if character in special else character


def _prefixes(items: list[Any]) -> list[str]:
    """Return the literals with which a match begins, one of each alternative."""
    words = [""]
    for operator, argument in items:
        ends: list[str] = []
        if operator is codes.LITERAL:
            words = [word + chr(argument) for word in words]
            continue
        if operator is codes.SUBPATTERN:
            ends = _prefixes(list(argument[3]))
            words = [word + end for word in words for end in ends]
            if all(item[0] is codes.LITERAL for item in argument[3]) or _is_fixed(list(argument[3])):
                continue
        elif operator is codes.BRANCH:
            words = [word + end for word in words for branch in argument[1] for end in _prefixes(list(branch))]
            if _is_fixed([(operator, argument)]):
                continue
        elif operator is codes.IN and len(argument) <= 3 and _is_fixed([(operator, argument)]):
            words = [word + chr(code) for word in words for _literal, code in argument]
            continue
        return words if len(words) <= 3 * _MAX_NAMES else [""]
    return words


def _is_fixed(items: list[Any]) -> bool:
    """Return True if only literals and alternatives of literals match."""
    for operator, argument in items:
        if operator is codes.LITERAL:
            continue
        if operator is codes.BRANCH and all(_is_fixed(list(branch)) for branch in argument[1]):
            continue
        if operator is codes.SUBPATTERN and _is_fixed(list(argument[3])):
            continue
        if operator is codes.IN and all(code is codes.LITERAL for code, _argument in argument):
            continue
        return False
    return True


def _inner_literals(items: list[Any]) -> list[str]:
    """Return the longest literal inside a match that begins with something else."""
    runs = [""]
    for operator, argument in items:
        if operator is codes.LITERAL:
            runs[-1] += chr(argument)
        elif operator is codes.SUBPATTERN and _is_fixed(list(argument[3])) and len(_expand(argument[3])) == 1:
            runs[-1] += _expand(argument[3])[0]
        else:
            runs.append("")
    longest = max(runs, key=len)
    return [longest] if len(longest) >= 2 else []


def _expand(items: Iterable[Any]) -> list[str]:
    """Return every text that a pattern without repetition matches."""
    words = [""]
    for item in items:
        ends = list(_expand_item(item))
        words = [word + end for word in words for end in ends]
        if len(words) > _MAX_NAMES:
            raise _UnsupportedError("has too many names")
    return words


def _expand_item(item: Any) -> Iterator[str]:
    operator, argument = item
    if operator is codes.LITERAL:
        yield chr(argument)
    elif operator is codes.SUBPATTERN:
        yield from _expand(argument[3])
    elif operator is codes.BRANCH:
        for branch in argument[1]:
            yield from _expand(branch)
    elif operator is codes.IN and all(code is codes.LITERAL for code, _argument in argument):
        yield from (chr(code) for _literal, code in argument)
    elif operator is codes.MAX_REPEAT and argument[:2] == (0, 1):
        yield ""
        yield from _expand(argument[2])
    else:
        raise _UnsupportedError("has a name that is no word")


def _write(name: str, version: str, words: str, rules: list[_Rule]) -> None:
    head = {
        "source": "https://github.com/gitleaks/gitleaks (config/gitleaks.toml)",
        "version": version,
        "license": "MIT, Copyright (c) 2019 Zachary Rice; see gitleaks_LICENSE.txt",
    }
    rows = (
        json.dumps({"kind": rule.kind, words: list(rule.words), "pattern": rule.pattern})
        for rule in sorted(dict.fromkeys(rules))
    )
    text = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in head.items())
    (DATA / name).write_text("{\n" + text + ',\n"rules": [\n' + ",\n".join(rows) + "\n]\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
