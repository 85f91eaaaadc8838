"""Meaning of a tool's name: which of its words are verbs, and what the worst of them does (ruling 4.4).

The words are data (`data/tool_verbs.toml`). A name without a verb that is known means nothing, and is not harmless.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from qwed.model import EffectKind
from qwed.model.tool_name import base_tool_name, server_of

INTERACT, DISPATCH, UNKNOWN = "interact", "dispatch", "unknown"
"""Meanings without an effect: medium risk; a verb that a parameter names; an unknown name."""
_SEVERITY = {
    EffectKind.READ.value: 0,
    INTERACT: 1,
    EffectKind.COMMUNICATE.value: 2,
    DISPATCH: 3,
    UNKNOWN: 4,
    EffectKind.WRITE.value: 5,
    EffectKind.EXECUTE.value: 6,
    EffectKind.DELETE.value: 7,
    EffectKind.SPEND.value: 8,
    EffectKind.ADMIN.value: 9,
    EffectKind.SECRET.value: 10,
}
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_MAX_NAME = 512
_MAX_PHRASE = 3
_SHORTEST_JOINED = 5
"""Letters of a verb that is recognised at the start of a longer word, as in `deletethings`."""
_PREFIXES = ("re", "un", "de", "dis", "auto", "bulk", "batch", "mass", "multi", "force")
_MCP = "mcp__"
_DIGITS = "0123456789"


class _ObjectRule(NamedTuple):
    """Meaning of verbs together with the things they are applied to."""

    of: frozenset[str]
    means: str
    words: frozenset[str]
    only: frozenset[str]
    excluded: frozenset[str]
    unless: frozenset[str]
    servers: frozenset[str]
    """Words of servers whose every thing is meant."""
    unless_servers: frozenset[str]

    def applies(self, verb: str, meaning: str, words: frozenset[str], server_words: frozenset[str]) -> bool:
        """Return True if the rule changes the meaning of this verb in a clause of these words."""
        if not self.unless.isdisjoint(words) or not self.unless_servers.isdisjoint(server_words):
            return False
        if meaning not in self.of or verb in self.excluded or (self.only and verb not in self.only):
            return False
        return not self.words.isdisjoint(words - {verb}) or not self.servers.isdisjoint(words | server_words)


class _Lexicon(NamedTuple):
    verbs: dict[str, str]
    nouns: frozenset[str]
    """Words that are nouns after another verb."""
    about: frozenset[str]
    """Last words that make one of `before_about` a noun."""
    before_about: frozenset[str]
    endings: frozenset[str]
    """Last words of names without a verb that are read."""
    endings_after_known: frozenset[str]
    reading_nouns: frozenset[str]
    """Verbs that read, and that are nouns after an unknown word."""
    known: frozenset[str]
    """Every word, with which a name may begin."""
    rules: tuple[_ObjectRule, ...]
    joining: frozenset[str]
    phrases: frozenset[str]
    """Known terms of several words."""
    dual: frozenset[str]
    """Verbs that are nouns at the beginning of a name."""
    deeds: dict[str, str]
    """Nouns of a deed, with their verbs."""
    secrets: frozenset[str]
    """Words for secrets."""


def words_of(name: str) -> list[str]:
    """Split a tool's name into words: `sendMoney`, `send-money` and `send_money` have the same two."""
    return [word.lower() for word in _WORD.findall(name)]


@lru_cache(maxsize=4096)
def meaning_of(name: str) -> str:
    """Return the meaning of a tool's name: an effect, `interact`, `dispatch` or `unknown`; the worst of its parts."""
    base = base_tool_name(name)
    if base.lower().startswith(_MCP):
        return UNKNOWN  # a malformed name: it is not known which part is the server
    words = _with_phrases(words_of(base[:_MAX_NAME]))
    clauses = list(_clauses(words))
    server_words = frozenset(words_of(server_of(name) or ""))
    meanings = [_meaning_of_clause(clause, server_words) for clause in clauses]
    # `list_files_and_folders` joins two nouns, `get_and_frobnicate` two verbs.
    later = [
        meaning
        for clause, meaning in zip(clauses[1:], meanings[1:], strict=True)
        if meaning != UNKNOWN or not clause[-1].endswith("s")
    ]
    return max((*meanings[:1], *later), key=_SEVERITY.__getitem__, default=UNKNOWN)


def names_secret(text: str) -> bool:
    """Return True if the whole text is a word for a secret, such as `Secrets` or `api-keys`."""
    term = "_".join(words_of(text[:_MAX_NAME]))
    secrets = _lexicon().secrets
    return term in secrets or term.removesuffix("s") in secrets


def effect_of(meaning: str) -> EffectKind | None:
    """Return the effect of a meaning, or None if it has none of its own."""
    return None if meaning in (INTERACT, DISPATCH, UNKNOWN) else EffectKind(meaning)


def meaning_with(name: str, verb: str) -> str:
    """Return what a tool such as `manage_user` does for the verb that a parameter names: `rename` renames a user."""
    verbs = _lexicon().verbs
    things = [word for word in words_of(base_tool_name(name)) if verbs.get(word) != DISPATCH]
    return meaning_of("_".join([*words_of(verb), *things]))


def worst_of(meanings: Iterable[str]) -> str:
    """Return the meaning with the gravest effect."""
    return max(meanings, key=_SEVERITY.__getitem__)


def _clauses(words: Sequence[str]) -> Iterator[list[str]]:
    joining = _lexicon().joining
    clause: list[str] = []
    for word in words:
        if word not in joining:
            clause.append(word)
        elif clause:
            yield clause
            clause = []
    if clause:
        yield clause


def _with_phrases(words: list[str]) -> list[str]:
    """Return the words with known terms of several words as one: `pull request` pulls nothing."""
    phrases, joined, index = _lexicon().phrases, [], 0
    while index < len(words):
        length = next(
            (size for size in range(_MAX_PHRASE, 1, -1) if "_".join(words[index : index + size]) in phrases), 1
        )
        joined.append("_".join(words[index : index + length]))
        index += length
    return joined


def _meaning_of_clause(words: list[str], server_words: frozenset[str]) -> str:
    verbs = _verbs_in(words, server_words)
    if not verbs:
        verbs = [("", EffectKind.READ.value if _ends_like_read(words, server_words) else UNKNOWN)]
    parts = frozenset((*words, *(part for word in words for part in word.split("_"))))
    return worst_of(_in_context(verb, meaning, parts, server_words) for verb, meaning in verbs)


def _ends_like_read(words: list[str], server_words: frozenset[str]) -> bool:
    """Return True if a name without a verb ends in what it shows."""
    lexicon = _lexicon()
    if any(not _is_known(word) for word in words[1:-1]):
        return False
    is_ending = words[-1] in lexicon.endings or words[-1] in lexicon.endings_after_known
    # In `clobber_schema` the first word may be a verb.
    return is_ending and (len(words) == 1 or _begins_known(words, server_words))


def _is_known(word: str) -> bool:
    known = _lexicon().known
    return word in known or word.removesuffix("s") in known or word.isdigit()


def _begins_known(words: list[str], server_words: frozenset[str]) -> bool:
    first = words[0]
    return first in server_words or first in _lexicon().known or first.removesuffix("s") in _lexicon().known


def _verbs_in(words: list[str], server_words: frozenset[str]) -> list[tuple[str, str]]:
    """Return the words that are verbs here, with their meanings."""
    lexicon = _lexicon()
    begins_known = len(words) == 1 or _begins_known(words, server_words)
    verbs: list[tuple[str, str]] = []
    has_verb, is_about = False, words[-1] in lexicon.about
    for index, word in enumerate(words):
        meaning = _meaning_of_word(word)
        # No noun stands after a plural: `instances_reset` resets.
        follows_plural = index > 0 and _is_plural(words[index - 1]) and word == words[-1]
        is_noun = (has_verb and word in lexicon.nouns and not follows_plural) or (
            is_about and word in lexicon.before_about
        )
        is_noun = is_noun or (not begins_known and word == words[-1] and word in lexicon.reading_nouns)
        if meaning is not None and not is_noun:
            verbs.append((word, meaning))
            is_dual = index == 0 and word in lexicon.dual and len(words) > 1 and _acts(words[-1])
            has_verb = has_verb or (meaning not in (INTERACT, DISPATCH) and not is_dual)
    if any(not _may_be_noun(verb, meaning) for verb, meaning in verbs):
        return verbs
    # In `pop_message` and `contact_erasure` another word says what is done.
    if len(verbs) == 1 and words[-1] == verbs[0][0] and len(words) > 1 and not begins_known:
        return [("", UNKNOWN)] if verbs[0][1] == EffectKind.COMMUNICATE else verbs
    return _deeds_in(words) or verbs


def _may_be_noun(verb: str, meaning: str) -> bool:
    return verb in _lexicon().nouns and meaning in (INTERACT, EffectKind.COMMUNICATE)


def _acts(word: str) -> bool:
    """Return True if a word is a verb that changes something, and seldom a noun after another noun."""
    return _lexicon().verbs.get(word) in _CHANGING and word in _LAST


_CHANGING = frozenset({"WRITE", "DELETE", "ADMIN", "EXECUTE", "SPEND"})
_LAST_TEXT = "accept block mute submit lock seal archive pause restore reset abort kick ban evict start stop trash"
_LAST = frozenset(_LAST_TEXT.split())


def _is_plural(word: str) -> bool:
    return (
        len(word) > _SHORTEST_PLURAL and word.endswith("s") and not word.endswith(("ss", "us", "is", "ics", "ws", "ns"))
    )


_SHORTEST_PLURAL = 4


def _deeds_in(words: list[str]) -> list[tuple[str, str]]:
    """Return the verbs of the nouns of a deed in a name without a verb."""
    lexicon = _lexicon()
    return [(lexicon.deeds[word], lexicon.verbs[lexicon.deeds[word]]) for word in words if word in lexicon.deeds]


def _meaning_of_word(word: str) -> str | None:
    """Return the meaning of a verb, also with a number, a prefix or what it is applied to written together."""
    verbs = _lexicon().verbs
    plain = word if word in verbs else word.rstrip(_DIGITS)
    if plain in verbs:
        return verbs[plain]
    if plain in _lexicon().known:
        return None
    for prefix in _PREFIXES:
        rest = plain.removeprefix(prefix)
        if rest != plain and verbs.get(rest, "READ") not in ("READ", INTERACT, DISPATCH):
            return verbs[rest]
    return _meaning_of_beginning(plain)


def _meaning_of_beginning(word: str) -> str | None:
    """Return the meaning of a verb to which its object is joined: `deletethings`; but `deleted` is no verb."""
    verbs, lexicon = _lexicon().verbs, _lexicon()
    if word in lexicon.endings or word.endswith(("ed", "ing", "tion", "tions", "er", "ers", "ment", "ments", "able")):
        return None
    for length in range(len(word) - 3, _SHORTEST_JOINED - 1, -1):
        meaning = verbs.get(word[:length])
        if meaning is not None and _SEVERITY[meaning] >= _SEVERITY[EffectKind.DELETE.value]:
            return meaning
    return None


def _in_context(verb: str, meaning: str, words: frozenset[str], server_words: frozenset[str]) -> str:
    rule = next((rule for rule in _lexicon().rules if rule.applies(verb, meaning, words, server_words)), None)
    return meaning if rule is None else rule.means


def verbs_by_meaning() -> dict[str, list[str]]:
    """Return the verbs of each meaning in alphabetical order, for the documentation."""
    meanings: dict[str, list[str]] = {}
    for verb, meaning in sorted(_lexicon().verbs.items()):
        meanings.setdefault(meaning, []).append(verb)
    return meanings


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    raw = tomllib.loads(files("qwed.kernel").joinpath("data/tool_verbs.toml").read_text("utf-8"))
    rules = tuple(map(_rule_of, raw["objects"]))
    verbs = _verbs_of(raw["verbs"])
    nouns = {name: frozenset(words.split()) for name, words in raw["nouns"].items()}
    known = frozenset(verbs).union(*nouns.values(), *(rule.words | rule.unless for rule in rules))
    return _Lexicon(
        verbs,
        nouns["after_verb"],
        nouns["about"],
        nouns["before_about"],
        nouns["about"] | nouns["ending"],
        nouns["ending_after_known"],
        nouns["reads_as_noun"],
        known,
        rules,
        frozenset(raw["joining"]["words"].split()),
        frozenset(term for term in known | _PHRASES if "_" in term),
        nouns["dual"],
        _deeds_of(raw["deeds"], verbs),
        rules[0].words,
    )


def _deeds_of(raw: dict[str, str], verbs: dict[str, str]) -> dict[str, str]:
    unknown = raw.keys() - verbs.keys()
    if unknown:
        raise ValueError(f"the deeds of tool_verbs.toml have the unknown verbs `{sorted(unknown)}`")
    return {noun: verb for verb, nouns in raw.items() for noun in nouns.split()}


_PHRASES = frozenset({"pull_request", "pull_requests", "merge_request", "merge_requests"})


def _verbs_of(raw: dict[str, str]) -> dict[str, str]:
    verbs: dict[str, str] = {}
    for meaning, words in raw.items():
        if meaning not in _SEVERITY:
            raise ValueError(f"unknown meaning `{meaning}` in tool_verbs.toml")
        for word in words.split():
            if verbs.setdefault(word, meaning) != meaning:
                raise ValueError(f"`{word}` has two meanings in tool_verbs.toml: `{verbs[word]}` and `{meaning}`")
    return verbs


def _rule_of(raw: dict[str, object]) -> _ObjectRule:
    of, means = raw["of"], raw["means"]
    if not isinstance(of, list) or not isinstance(means, str) or not {*of, means} <= _SEVERITY.keys():
        raise ValueError("an unknown meaning in the objects of tool_verbs.toml")
    names = ("words", "only", "not", "unless", "servers", "unless_servers")
    words, *sets = (frozenset(str(raw.get(name, "")).split()) for name in names)
    return _ObjectRule(frozenset(of), means, words | frozenset(map(_plural_of, words)), *sets)


def _plural_of(term: str) -> str:
    """Return the plural of a term of several words: a table of words has each once."""
    return f"{term}s" if "_" in term and not term.endswith("s") else term
