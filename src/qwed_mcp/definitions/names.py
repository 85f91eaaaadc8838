"""Names that are taken for another: in other letters, with digits for letters, run together, or one slip away."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qwed.guards._instructions.folding import mixed_words, plain_letters
from qwed.kernel.tools import words_of
from qwed_mcp.definitions.vocabulary import WORDS

LONGEST = 128
"""Of a name in the kernel, the server's in front included."""
_SHORTEST_SLIP = 4
_DIGITS = "0123456789"
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "8": "b", "2": "z", "q": "g"})
_REGULAR = re.compile(r"[A-Za-z0-9]++(?:[_.-][A-Za-z0-9]++)*+")
"""Words in any convention, and nothing between them but one sign."""
_APART = re.compile(r"[\W_]+")


class Known(NamedTuple):
    """A name somebody may rely on, and whose it is."""

    name: str
    owner: str
    here: bool
    """Whether it is a tool of the same server: its author does not write one name in two ways."""


def skeleton(name: str) -> str:
    """What is left of a name for a careless eye."""
    plain = _APART.sub("", plain_letters(name).lower())
    return plain.replace("rn", "m").replace("vv", "w").translate(_ALIKE)


def kernel_name(server: str, tool: str) -> str:
    """The name under which a tool of a server goes to the kernel."""
    return f"mcp__{server}__{tool}"


def unfit(name: str, server: str) -> Iterator[str]:
    """Why the kernel cannot take the name: nobody can release such a tool."""
    if not name.strip():
        yield "has no name"
    if len(kernel_name(server, name)) > LONGEST:
        yield f"its name is too large: with the server's in front at most {LONGEST} characters are taken"
    if not name.isprintable():
        yield "its name holds characters that cannot be seen"


def in_other_letters(name: str) -> bool:
    """Whether a name is written in letters that are taken for others."""
    return bool(mixed_words(name)) or (not name.isascii() and plain_letters(name).isascii())


class Names:
    """The names that are known, by how they look: asked once a name, in time that grows with its length alone."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._looks: dict[str, list[Known]] = {}
        self._slips: dict[tuple[str, ...], list[Known]] = {}
        for each in known:
            self._looks.setdefault(skeleton(each.name), []).append(each)
            for key in _slip_keys(_words(each.name)):
                self._slips.setdefault(key, []).append(each)

    def taken_for(self, name: str) -> Known | None:
        """The known name this one could be taken for."""
        for each in self._looks.get(skeleton(name), ()):
            if each.name != name and not _is_plainer(name, each.name) and _is_fraud(name, each):
                return each
        words = _words(name)
        for key in _slip_keys(words):
            for each in self._slips.get(key, ()):
                if each.name != name and _is_slip(words, _words(each.name), each.here):
                    return each
        return None


def _is_fraud(name: str, known: Known) -> bool:
    """`read_file` and `readFile`: two servers that write the same words in two ways are honest, one server is not."""
    return known.here or not (_REGULAR.fullmatch(name) and words_of(name) == words_of(known.name))


def _is_plainer(name: str, other: str) -> bool:
    """Whether a name is the one that is imitated, and not the imitation: made of words, and the other is not."""
    return _is_made_of_words(name) and not _is_made_of_words(other)


def _is_made_of_words(name: str) -> bool:
    return bool(_REGULAR.fullmatch(name)) and WORDS.issuperset(words_of(name))


def _words(name: str) -> tuple[str, ...]:
    return tuple(words_of(plain_letters(name)))


def _slip_keys(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The name as it reads when one letter of one word is left out: names one slip apart share such a key."""
    for at, word in enumerate(words):
        yield (*words[:at], f"{word}?", *words[at + 1 :])
        if len(word) >= _SHORTEST_SLIP:
            for gone in range(len(word)):
                yield (*words[:at], f"{word[:gone]}{word[gone + 1 :]}?", *words[at + 1 :])


def _is_slip(mine: tuple[str, ...], known: tuple[str, ...], here: bool) -> bool:
    """Whether `mine` reads as `known` misspelt; words that both exist are two words."""
    differing = [(one, other) for one, other in zip(mine, known, strict=True) if one != other]
    if len(differing) != 1:
        return False
    word, meant = differing[0]
    if len(meant) < _SHORTEST_SLIP or len(word) < _SHORTEST_SLIP - 1:
        return False
    if word in WORDS or _is_form_of(word, meant):
        return False
    return _one_slip(word, meant) and (meant in WORDS or not here)


def _is_form_of(one: str, other: str) -> bool:
    """Whether two words are one word in two forms: more than one, done already, or with another number."""
    short, long = sorted((one.rstrip(_DIGITS), other.rstrip(_DIGITS)), key=len)
    return long in (short, f"{short}s", f"{short.removesuffix('e')}ed")


def _one_slip(one: str, other: str) -> bool:
    """Whether one letter more, less, other, or two that changed places make one word the other."""
    short, long = sorted((one, other), key=len)
    at = next((index for index, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
    if len(short) != len(long):
        return len(long) - len(short) == 1 and short[at:] == long[at + 1 :]
    swapped = short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]
    return swapped or short[at + 1 :] == long[at + 1 :]
