"""Look-alike letters, and the plain letter each is folded to."""

import re
import unicodedata

from qwed.model.unicode_normal import normalize

_LOOKALIKES = {
    "a": "0430 03b1 0251",
    "b": "042c 0412 0432 044c 03b2 0185",
    "c": "0441 03f2",
    "d": "0501 0257 0111",
    "e": "0435 0454 04bd 03b5",
    "f": "0192 03dd",
    "g": "0261 0581 01e5",
    "h": "04bb 0570 041d 043d",
    "i": "0456 03b9 0131 0269 04cf",
    "j": "0458 03f3",
    "k": "043a 03ba 039a 041a",
    "l": "029f",
    "m": "043c 039c 041c",
    "n": "043f 03b7 0578 039d",
    "o": "043e 03bf 03c3 0585 0e50",
    "p": "0440 03c1 03a1",
    "q": "051b 0563",
    "r": "0433 0280 0393",
    "s": "0455 0282 a731",
    "t": "0442 03c4 03a4",
    "u": "03c5 057d 0446 028b",
    "v": "0475 03bd",
    "w": "051d 03c9 0461 0448 0561",
    "x": "0445 03c7",
    "y": "0443 03b3 04af",
    "z": "1d22 03b6 0290",
    "A": "0410 0391",
    "B": "0392",
    "C": "0421",
    "E": "0415 0395",
    "H": "0397",
    "I": "0406 0399",
    "J": "0408",
    "O": "041e 039f",
    "P": "0420",
    "S": "0405",
    "T": "0422",
    "X": "0425 03a7",
    "Y": "03a5 0423",
    "Z": "0396",
    "-": "2010 2011 2012 2013 2014 2212",
    "_": "02cd",
    ".": "3002",
    "/": "2044 2215",
}
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
