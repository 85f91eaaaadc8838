"""Query languages that no engine judges: a query in one is a read if it is proven to be, and else UNRESOLVED.

Each language has a form by which a text is recognised, and the words that its reads consist of.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from qwed.kernel.analysis.query_mutations import is_graph_pattern
from qwed.model.data_files import read_mapping, read_rows

_LONGEST = 20_000
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"' + r"|'(?:[^'\\]|\\.)*+'|`[^`]*+`")
_CALL = re.compile(r"(\w{1,64})\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w{0,63}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MONGO_CHANGES = re.compile(r"\$(?:out|merge|where|function|accumulator)\b")
_MONGO_PROGRAM = re.compile(r";\s*\S|=>|\bfunction\b")
_WORDS = {language: _words(names) for language, names in read_mapping(__file__, "query_words.txt").items()}
_GREMLIN_STEPS = _WORDS["gremlin"]
_MONGO_METHODS = _WORDS["mongo"]
_REDIS_READS = _WORDS["redis"]
_LOG_STAGES = _WORDS["log"]
_SPARQL_CHANGES = _words("insert delete load clear drop create copy move add")
_FLUX_CHANGES = re.compile(
    r"\bto\s*\(|\b(?:http|sql|mqtt|kafka|secrets|slack|pagerduty|sendgrid)\s*\.\s*\w", re.IGNORECASE
)
_SPL_CHANGES = re.compile(
    r"\|\s*(?:delete|outputlookup|outputcsv|outputtext|collect|meventcollect|mcollect|tscollect|sendemail|sendalert"
    r"|script|run|runshellscript|map|rest|dbxquery|dump|crawl|savedsearch)\b",
    re.IGNORECASE,
)


_STAGE = re.compile(r"(?:\A|\|)\s*([\w-]+)")


def _reads_gremlin(text: str) -> bool:
    plain = _STRINGS.sub('""', text)
    called = frozenset(_CALL.findall(plain))
    # A closure, a second statement or an assignment is Groovy, which can do anything.
    return bool(called) and called <= _GREMLIN_STEPS and not re.search(r"[{};=]", plain)


def _reads_mongo(text: str) -> bool:
    plain = _STRINGS.sub('""', text)
    called = frozenset(_CALL.findall(plain))
    return called <= _MONGO_METHODS and not _MONGO_CHANGES.search(text) and not _MONGO_PROGRAM.search(plain)


def _reads_sparql(text: str) -> bool:
    # A reference may have a `#` or a `//` in it, so references come before comments.
    plain = re.sub(r"#[^\n\r]*", " ", re.sub(r"<[^<>\s]*>", "<>", _STRINGS.sub('""', text)))
    # `ex:load` is a name, not a verb.
    words = {word.lower() for word in _WORD.findall(re.sub(r"(?<![\w-])[\w-]{0,64}+:[\w.-]++|[?$]\w++", " ", plain))}
    return not words & _SPARQL_CHANGES and "service" not in words


def _reads_redis(text: str) -> bool:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return bool(lines) and all(line[0].lower() in _REDIS_READS for line in lines)


def _begins_with(*words: str) -> Callable[[str], bool]:
    pattern = re.compile(rf"\s*(?:{'|'.join(words)})\b(?![^;]*;\s*\S)", re.IGNORECASE)
    return lambda text: pattern.match(text) is not None and not re.search(r"\binto\b", text, re.IGNORECASE)


def _has_none_of(*words: str) -> Callable[[str], bool]:
    pattern = re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    return lambda text: pattern.search(_STRINGS.sub('""', text)) is None


class _Language(NamedTuple):
    names: frozenset[str]
    """Words of a tool or a parameter that name it."""
    form: re.Pattern[str] | None
    """Form of a text that is in this language, whatever its name."""
    reads: Callable[[str], bool]


_CYPHER_CHANGES = re.compile(
    r"\b(?:delete|remove|set|create|merge|drop|foreach|load|call|alter|grant)\b", re.IGNORECASE
)


def _reads_cypher(text: str) -> bool:
    """Return True for a read, and for a pattern, which is judged by its clauses."""
    return is_graph_pattern(text) or _CYPHER_CHANGES.search(_STRINGS.sub('""', text)) is None


_BEGINNING = r"(?:\A|(?<=[;\n}|(/])) ?"
"""Where a clause of a condensed text may begin: comments, hints and other statements may stand before it."""


def _condensed(text: str) -> str:
    """Return the text with one blank or one line end in place of several, so that a form need not look for them."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEGINNING}(?:{pattern})", re.IGNORECASE)


_READS: dict[str, Callable[[str], bool]] = {
    "gremlin": _reads_gremlin,
    "cypher": _reads_cypher,
    "mongosh": _reads_mongo,
    "sparql": _reads_sparql,
    "influx": _begins_with("select", "show", "explain"),
    "flux": lambda text: _FLUX_CHANGES.search(text) is None,
    "redis": _reads_redis,
    "kql": lambda text: re.search(rf"{_BEGINNING}\.(?!\d)", _condensed(text)) is None,
    "spl": lambda text: _SPL_CHANGES.search(text) is None,
    "aql": _has_none_of("insert", "update", "replace", "remove", "upsert"),
    "surreal": _begins_with("select", "info", "return", "show"),
    "xquery": _has_none_of("insert", "delete", "replace", "rename", "xdmp", "proc", "file"),
    "datalog": _has_none_of("transact", "retract", "retractEntity", "excise"),
    "cloudwatch": lambda text: _LOG_STAGES.issuperset(
        stage.lower() for stage in _STAGE.findall(_STRINGS.sub('""', text))
    ),
    "dax": _has_none_of("create", "alter", "drop", "delete", "insert", "update", "refresh", "process"),
}
"""Tests of whether a text is a read, by the first name of its language."""
_LANGUAGES = tuple(
    _Language(_words(names), None if form == "-" else _form(form), _READS[names.split()[0]])
    for names, form in read_rows(__file__, "query_languages.txt", 2)
)


def is_unproven_query(text: str, names: frozenset[str]) -> bool:
    """Return True if the text is a query of such a language and is not proven to be a read.

    `names` are the words of the tool and the parameter, which may name the language.
    """
    condensed = _condensed(text)
    concerned = (language for language in _LANGUAGES if _concerns(language, condensed, names))
    return any(len(text) > _LONGEST or not language.reads(text) for language in concerned)


def _concerns(language: _Language, condensed: str, names: frozenset[str]) -> bool:
    """Return True if the text is in this language, by a name or by its form."""
    return not language.names.isdisjoint(names) or (language.form is not None and bool(language.form.search(condensed)))


def names_language(names: frozenset[str]) -> bool:
    """Return True if one of these words names such a language."""
    return any(not language.names.isdisjoint(names) for language in _LANGUAGES)
