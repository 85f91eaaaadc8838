"""Look-alike letters, and the plain letter each is folded to."""

import re
import unicodedata

from qwed.model.data_files import read_mapping
from qwed.model.unicode_normal import normalize

_LOOKALIKES = read_mapping(__file__, "lookalikes.txt")
"""Look-alikes by code point, because the letters themselves cannot be told apart in source code."""
_PLAIN = {int(odd, 16): plain for plain, odds in _LOOKALIKES.items() for odd in odds.split()}
_LEET = str.maketrans("013457@$!", "oieastasi")
_LEET_WORD = re.compile(r"(?<![a-z0-9@$!])(?=[a-z]{0,40}[013457@$!])(?=[0-9@$!]{0,40}[a-z])[a-z0-9@$!]{3,40}+")


def to_plain_letters(text: str) -> str:
    """Return the text without diacritics, and with each look-alike replaced by the Latin letter it resembles."""
    if text.isascii():
        return text
    narrow = normalize("NFKC", text).translate(_PLAIN)
    return "".join(character for character in normalize("NFD", narrow) if unicodedata.category(character) != "Mn")


def undo_leetspeak(text: str) -> str:
    """Return lower-case text with words like `1gn0re` spelt in letters."""
    return _LEET_WORD.sub(lambda word: word[0].translate(_LEET), text)


_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC")
_WORD = re.compile(r"[^\W\d_]+")


def mixed_script_words(text: str) -> list[str]:
    """Return the words that mix letters of several alphabets that look alike."""
    if text.isascii():
        return []
    return [word for word in _WORD.findall(text) if not word.isascii() and len(_scripts(word)) > 1]


def _scripts(word: str) -> set[str]:
    names = (unicodedata.name(letter, "") for letter in set(word))
    return {script for name in names for script in _SCRIPTS if name.startswith(script)}
