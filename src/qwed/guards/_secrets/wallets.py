"""Keys of wallets: seed phrases, key stores, key arrays and key pairs."""

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise

from qwed.guards._secrets.wallet_checksums import is_key_pair
from qwed.guards.text_scan import UNSCANNED, TextFinding

# Seed phrases of BIP 39: the words are numbers of 11 bits, and the last bits are a checksum.
_LENGTHS = (24, 21, 18, 15, 12)
_SHORTEST = _LENGTHS[-1]
_WORD = re.compile(r"[^\W\d_]{1,24}")
_MAX_GAP = 8
"""Characters between two words of a phrase: blanks, commas, line ends, quotes, numbers."""
MAX_PHRASES = 2_000
"""Possible phrases checked in one text; after that the rest is reported as unscanned."""


@cache
def _word_lists() -> dict[str, tuple[tuple[int, int], ...]]:
    """Return (list, number) pairs of every word of the lists of BIP 39."""
    numbers: dict[str, tuple[tuple[int, int], ...]] = {}
    lines = (files("qwed.guards._secrets") / "data" / "bip39_words.txt").read_text(encoding="utf-8").splitlines()
    for index, line in enumerate(row for row in lines if not row.startswith("#")):
        words = line.split()[1:]
        if len(words) != 1 << 11:
            raise ValueError(f"`bip39_words.txt` has {len(words)} words in list {index}; a list has 2048")
        for number, word in enumerate(words):
            numbers[word] = (*numbers.get(word, ()), (index, number))
    return numbers


def find_seed_phrases(text: str, lowered: str) -> Iterator[TextFinding]:
    """Yield every sequence of words that is a seed phrase with a valid checksum."""
    if sum(map(text.count, _GAPS)) < _SHORTEST - 1 or not _has_run(lowered):
        return
    lists = _word_lists()
    tried = 0
    for run in _runs(lowered):
        start = 0
        while start <= len(run) - _SHORTEST:
            if len({match[0] for match in run[start : start + _SHORTEST]}) < _MIN_DISTINCT:
                start += 1
                continue
            tried += 1
            if tried > MAX_PHRASES:
                yield TextFinding(UNSCANNED, run[start].start(), len(text))
                return
            length = _phrase_length([lists[match[0]] for match in run[start : start + _LENGTHS[0]]])
            if length:
                yield TextFinding("seed_phrase", run[start].start(), run[start + length - 1].end())
            elif start == 0 and _LABEL.search(lowered, max(0, run[0].start() - _NEAR), run[0].start() + _NEAR):
                yield TextFinding("seed_phrase", run[0].start(), run[-1].end())
                break
            start += length or 1


_LABEL = re.compile(r"seed|mnemonic|(?:recovery|backup|secret|wallet)[ -]?(?:phrase|words)|wallet")
_NEAR = 40
"""Characters from a label to its phrase, which is a secret then even if its checksum is wrong."""


def _has_run(lowered: str) -> bool:
    """Return True if so many words in a row are in a list as the shortest phrase has, numbers aside."""
    words = lowered.translate(_MARKS).split() if lowered.isascii() else lowered.replace(",", " ").split()
    if len(words) < _SHORTEST:
        return False
    is_listed = _word_lists().__contains__
    # In a phrase every third word is in a list too; looking at those only is faster.
    return _THIRDS in bytes(map(is_listed, words[::_STRIDE])) and _PHRASE in bytes(map(is_listed, words))


_MIN_DISTINCT = 6
_PHRASE = b"\1" * _SHORTEST
_STRIDE = 3
_THIRDS = b"\1" * (_SHORTEST // _STRIDE)
_MARKS = str.maketrans(dict.fromkeys(',"-_.0123456789()[]:;|/*=<>', " "))
_GAPS = " \n,-_.\u3000"


def _runs(lowered: str) -> Iterator[list[re.Match[str]]]:
    """Yield the longest sequences of words that are all in a list."""
    lists = _word_lists()
    run: list[re.Match[str]] = []
    for match in _WORD.finditer(lowered):
        if match[0] in lists and (not run or match.start() - run[-1].end() <= _MAX_GAP):
            run.append(match)
            continue
        if len(run) >= _SHORTEST:
            yield run
        run = [match] if match[0] in lists else []
    if len(run) >= _SHORTEST:
        yield run


def _phrase_length(words: list[tuple[tuple[int, int], ...]]) -> int:
    """Return the number of words from the first on that are a phrase of one list, or 0."""
    for length in _LENGTHS:
        if length > len(words):
            continue
        shared = set.intersection(*({index for index, _number in places} for places in words[:length]))
        for index in shared:
            numbers = [dict(places)[index] for places in words[:length]]
            if _has_checksum(numbers):
                return length
    return 0


def _has_checksum(numbers: list[int]) -> bool:
    bits = "".join(f"{number:011b}" for number in numbers)
    size = len(bits) // 33
    entropy = int(bits[:-size], 2).to_bytes((len(bits) - size) // 8, "big")
    return int(bits[-size:], 2) == hashlib.sha256(entropy).digest()[0] >> (8 - size)


# A key pair of Solana is 64 bytes: an array, or a word in base58.
_KEY_PAIR = re.compile(r"(?<![A-Za-z0-9])[1-9A-HJ-NP-Za-km-z]{86,88}(?![A-Za-z0-9])")
MAX_PAIRS = 200
"""Words in one text that are tested for a key pair; after that the rest is reported as unscanned."""
_KEY_ARRAY = re.compile(r"\[\s{0,8}(?:\d{1,3}\s{0,4},\s{0,8}){63}\d{1,3}\s{0,8}\]")
_KEY_STORE = re.compile(r"\"ciphertext\"\s{0,4}:\s{0,4}\"([0-9a-f]{64,512})\"", re.IGNORECASE)


def find_key_files(text: str) -> Iterator[TextFinding]:
    """Yield the key arrays and key pairs of Solana and the encrypted keys of Ethereum key stores."""
    for count, match in enumerate(_KEY_PAIR.finditer(text)):
        if count == MAX_PAIRS:
            yield TextFinding(UNSCANNED, match.start(), len(text))
            break
        if is_key_pair(match[0]):
            yield TextFinding("wallet_key", *match.span())
    if text.count(",") >= 63 and "[" in text:
        for match in _KEY_ARRAY.finditer(text):
            numbers = [int(number) for number in match[0].strip("[] \n\r\t").split(",")]
            if max(numbers) < 2566 and not _is_ascending(numbers):
                yield TextFinding("wallet_key", *match.span())
    if "ciphertext" in text and "kdf" in text:
        yield from (TextFinding("wallet_key", *match.span(1)) for match in _KEY_STORE.finditer(text))


def _is_ascending(numbers: list[int]) -> bool:
    return sum(second >= first for first, second in pairwise(numbers)) > 3 * len(numbers) // 4
