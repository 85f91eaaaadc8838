"""Detection of look-alike tool names: confusable letters, digits for letters, joined words or one typo."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qwed.guards._prompt_injection.confusables import mixed_script_words, to_plain_letters
from qwed.kernel.tool_verbs import words_of
from qwed_mcp.tool_pinning.word_list import WORDS

MAX_NAME_LENGTH = 128
"""Longest qualified tool name that the kernel accepts."""
_MIN_WORD_LENGTH = 4
_DIGITS = "0123456789"
_LOOKALIKE_LETTERS = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "8": "b", "2": "z", "q": "g"})
_REGULAR_NAME = re.compile(r"[A-Za-z0-9]++(?:[_.-][A-Za-z0-9]++)*+")
"""Words in any naming convention, separated by single characters."""
_SEPARATORS = re.compile(r"[\W_]+")


class KnownTool(NamedTuple):
    """Tool name that users may rely on, and its owner."""

    name: str
    owner: str
    same_server: bool
    """True for a tool of the same server, whose author does not write one name in two ways."""


def skeleton(name: str) -> str:
    """Reduce a name to what a careless reader sees."""
    plain = _SEPARATORS.sub("", to_plain_letters(name).lower())
    return plain.replace("rn", "m").replace("vv", "w").translate(_LOOKALIKE_LETTERS)


def kernel_name(server: str, tool: str) -> str:
    """Return the qualified name of a server's tool."""
    return f"mcp__{server}__{tool}"


def name_problems(name: str, server: str) -> Iterator[str]:
    """Yield the reasons that the kernel cannot accept the name; such a tool cannot be released."""
    if not name.strip():
        yield "has no name"
    if len(kernel_name(server, name)) > MAX_NAME_LENGTH:
        yield f"its name is too long: with the server's name in front at most {MAX_NAME_LENGTH} characters are allowed"
    if not name.isprintable():
        yield "its name contains invisible characters"


def has_confusable_letters(name: str) -> bool:
    """Return True if a name contains letters that look like others."""
    return bool(mixed_script_words(name)) or (not name.isascii() and to_plain_letters(name).isascii())


class LookalikeIndex:
    """Index of known names by appearance; a lookup takes time proportional to the length of the name."""

    def __init__(self, tools: Iterable[KnownTool]) -> None:
        self._by_skeleton: dict[str, list[KnownTool]] = {}
        self._by_misspelling: dict[tuple[str, ...], list[KnownTool]] = {}
        for tool in tools:
            self._by_skeleton.setdefault(skeleton(tool.name), []).append(tool)
            for key in _misspelling_keys(_words(tool.name)):
                self._by_misspelling.setdefault(key, []).append(tool)

    def find_lookalike(self, name: str) -> KnownTool | None:
        """Return the known name that this one could be mistaken for, or None."""
        for tool in self._by_skeleton.get(skeleton(name), ()):
            if tool.name != name and not _is_plainer(name, tool.name) and _is_imitation(name, tool):
                return tool
        words = _words(name)
        for key in _misspelling_keys(words):
            for tool in self._by_misspelling.get(key, ()):
                if tool.name != name and _is_misspelling(words, _words(tool.name), tool.same_server):
                    return tool
        return None


def _is_imitation(name: str, known: KnownTool) -> bool:
    """Return True unless both names are the same words in two conventions, such as `read_file` and `readFile`.

    Two servers may differ in convention; one server does not.
    """
    return known.same_server or not (_REGULAR_NAME.fullmatch(name) and words_of(name) == words_of(known.name))


def _is_plainer(name: str, other: str) -> bool:
    """Return True if the name consists of words and the other does not: then it is the original, not the imitation."""
    return _is_made_of_words(name) and not _is_made_of_words(other)


def _is_made_of_words(name: str) -> bool:
    return bool(_REGULAR_NAME.fullmatch(name)) and WORDS.issuperset(words_of(name))


def _words(name: str) -> tuple[str, ...]:
    return tuple(words_of(to_plain_letters(name)))


def _misspelling_keys(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the name with one letter of one word left out; names one typo apart share such a key."""
    for index, word in enumerate(words):
        yield (*words[:index], f"{word}?", *words[index + 1 :])
        if len(word) >= _MIN_WORD_LENGTH:
            for dropped in range(len(word)):
                yield (*words[:index], f"{word[:dropped]}{word[dropped + 1 :]}?", *words[index + 1 :])


def _is_misspelling(mine: tuple[str, ...], pattern: tuple[str, ...], same_server: bool) -> bool:
    """Return True if `mine` reads as `pattern` misspelt; two dictionary words are two words."""
    differing = [(one, other) for one, other in zip(mine, pattern, strict=True) if one != other]
    if len(differing) != 1:
        return False
    word, intended = differing[0]
    if len(intended) < _MIN_WORD_LENGTH or len(word) < _MIN_WORD_LENGTH - 1:
        return False
    if word in WORDS or _is_inflection(word, intended):
        return False
    return _is_one_edit_apart(word, intended) and (intended in WORDS or not same_server)


def _is_inflection(one: str, other: str) -> bool:
    """Return True if two words are one word in two forms: plural, past tense or another number."""
    short, long = sorted((one.rstrip(_DIGITS), other.rstrip(_DIGITS)), key=len)
    return long in (short, f"{short}s", f"{short.removesuffix('e')}ed")


def _is_one_edit_apart(one: str, other: str) -> bool:
    """Return True if one letter inserted, removed, replaced or swapped with the next makes the words equal."""
    short, long = sorted((one, other), key=len)
    index = next((index for index, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
    if len(short) != len(long):
        return len(long) - len(short) == 1 and short[index:] == long[index + 1 :]
    swapped = short[index : index + 2] == long[index : index + 2][::-1] and short[index + 2 :] == long[index + 2 :]
    return swapped or short[index + 1 :] == long[index + 1 :]
