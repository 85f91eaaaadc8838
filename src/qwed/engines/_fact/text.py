"""Text of the fact engine: sentences and tokens with offsets, and detection of deceptive characters."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from qwed.engines._fact.lexicon import BACK_REFERENCES, BLOCKING, DENIALS, FALSEHOOD_TITLES, FORWARD_REFERENCES, FRAMES
from qwed.engines._fact.numerals import RUN
from qwed.guards.text_scan import has_invisible
from qwed.model.data_files import read_table
from qwed.model.unicode_normal import normalize

MAX_CONTEXT = 200_000
MAX_CLAIM = 2_000
MAX_SENTENCE = 1_500
_MAX_AFTERTHOUGHT_WORDS = 3
_MAX_REMARK_WORDS = 6

_HIDDEN = re.compile("[\u00ad\u200b-\u200d\u2060-\u2064\ufeff\u034f\u180e\ufe00-\ufe0f\u115f\u1160\u3164\uffa0\u2800]")
_TOKEN = re.compile(
    r"""(?P<iso>\d{4}-\d{2}-\d{2}(?![\d-]))
      | (?P<clock>\d{1,2}:\d{2}(?::\d{2})?)
      | (?P<slashed>\d{1,4}(?:/\d{1,4}){1,2})
      | (?P<ordinal>\d+(?:st|nd|rd|th)\b)
      | (?P<decade>\d{4}s\b)
      | (?P<number>(?:(?<![\w)\]%])[-\u2212\u2013])?NUMERAL)
      | (?P<dotted>(?:[A-Za-z]\.){2,})
      | (?P<word>[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*)
      | (?P<sign>[^\s\w]|_)""".replace("NUMERAL", RUN),
    re.VERBOSE,
)
_ABBREVIATIONS = frozenset(read_table(__file__, "abbreviations.txt").split())
_BREAK = re.compile(r"[.!?]+[\"'”\u2019)\]]*(?=\s)|\n(?=\s*(?:[-*•>#]|\d+[.)])\s)")
DOUBTS = BLOCKING - frozenset(
    ["since", "as", "that", "who", "whose", "which", "where", "after", "before", "when", "while", "will", "can", "or"]
)
_BULLETS = re.compile(r"(?:\s|[-*•]+(?=\s|$))*")
_LAST_WORD = re.compile(r"([\w.]+?)\.?$")
_CONTRACTIONS = {
    "can't": ["can", "not"],
    "won't": ["will", "not"],
    "cannot": ["can", "not"],
    "shan't": ["shall", "not"],
}


class FactToken(NamedTuple):
    """One word, number or sign: normalised text, original text and offset."""

    kind: str
    text: str
    written: str
    start: int

    @property
    def capital(self) -> bool:
        """True if it is written like a name."""
        return self.kind in ("word", "dotted") and not self.written.islower() and self.written != "'s"


class Sentence(NamedTuple):
    """A sentence of the context; `stated` is False if the context does not assert it."""

    start: int
    end: int
    text: str
    stated: bool


def deceptive_characters(text: str) -> str:
    """Describe characters that make a text look like another; empty if there are none."""
    if has_invisible(text.replace("\r", "")) or _HIDDEN.search(text):
        return "invisible characters"
    for word in re.findall(r"[^\W\d_]+", text):
        if not word.isascii() and len({_script(letter) for letter in word} - {""}) > 1:
            return f"letters of two alphabets in `{word[:40]}`"
    return ""


def _script(letter: str) -> str:
    name = unicodedata.name(letter, "").partition(" ")[0]
    return name if name in ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL") else ""


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences of a text in order, with offsets."""
    sentences: list[Sentence] = []
    frame = False
    for paragraph in re.finditer(r"(?:[^\n]|\n(?![ \t\r]*\n))+", text):
        spans = list(_spans(text, paragraph.start(), paragraph.end()))
        pieces = [text[start:end] for start, end in spans]
        if not pieces:
            continue
        frame = frame or any(_first_word(piece) in FRAMES for piece in pieces)
        inside = ""
        frame = frame or DENIALS.match(pieces[0]) is not None
        for (start, end), sentence, following in zip(spans, pieces, [*pieces[1:], ""], strict=True):
            opened, inside = inside, _open_quotation(sentence, inside)
            stated = not (frame or opened or inside) and _states(sentence) and not _retracts_previous(following)
            sentences.append(Sentence(start, end, sentence, stated))
            frame = frame or _casts_doubt_on_next(sentence)
        # A heading, or the line above a list, applies to the paragraph below it too.
        frame = _casts_doubt_on_next(pieces[-1])
    return sentences


def _states(sentence: str) -> bool:
    """Return True if a sentence asserts something: not a question, not a quotation, not too long."""
    trails_off = sentence.rstrip("\"'”\u2019) ").endswith(("?", "...", "…"))
    return (
        not trails_off
        and not _has_quotation(sentence)
        and not sentence.startswith(">")
        and len(sentence) <= MAX_SENTENCE
    )


def _retracts_previous(following: str) -> bool:
    """Return True if a sentence retracts the previous one, or is an afterthought such as `Allegedly.`."""
    words = re.findall(r"[^\W\d_]+", following.casefold())
    if DENIALS.match(following) is not None or (len(words) <= _MAX_AFTERTHOUGHT_WORDS and not DOUBTS.isdisjoint(words)):
        return True
    return len(words) <= _MAX_REMARK_WORDS and not BACK_REFERENCES.isdisjoint(words) and not DOUBTS.isdisjoint(words)


def _casts_doubt_on_next(sentence: str) -> bool:
    """Return True if a sentence puts the next one in doubt: unfinished, a mere title, or pointing at it."""
    words = re.findall(r"[^\W\d_]+", sentence.casefold())
    if DOUBTS.isdisjoint(words):
        return False
    titles = len(words) <= _MAX_AFTERTHOUGHT_WORDS and words[0] in FALSEHOOD_TITLES
    return sentence.rstrip()[-1:] not in (".", "!", "?") or titles or not FORWARD_REFERENCES.isdisjoint(words)


def _first_word(sentence: str) -> str:
    match = re.search(r"[^\W\d_]+", sentence)
    return match[0].casefold() if match else ""


def _open_quotation(sentence: str, inside: str) -> str:
    """Return the quotation mark that is open at the end of a sentence, or an empty string."""
    for mark in re.finditer("[\"“”]|(?<![^\\s(])['\u2018](?=\\w)|['\u2019](?![^\\s.,;:!?)])", sentence):
        kind = mark[0]
        if not inside and (
            kind in '"“\u2018' or (kind == "'" and mark.end() < len(sentence) and sentence[mark.end()].isalnum())
        ):
            inside = kind
        elif inside == _OPENS.get(kind):
            inside = ""
    return inside


_OPENS = {'"': '"', "”": "“", "'": "'", "\u2019": "\u2018"}


def _has_quotation(sentence: str) -> bool:
    """Return True if several words of a sentence are quoted."""
    return re.search(r"[\"“][^\"”]*\w\s+\w+[^\"”]*\s+\w[^\"”]*[\"”]", sentence) is not None


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for match in _BREAK.finditer(text, start, end):
        if match[0].startswith("."):
            last = _LAST_WORD.search(text, max(at, match.start() - 20), match.start())
            word = last[1].casefold() if last else ""
            if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and text[match.start() - 1].isupper()):
                continue
        yield from _trimmed(text, at, match.end())
        at = match.end()
    yield from _trimmed(text, at, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    # A minus before a number at the beginning is not a bullet.
    opened = _BULLETS.match(text, start, end)
    start = opened.end() if opened else start
    if text[start:end].strip():
        yield start, start + len(text[start:end].rstrip())


def tokens_of(text: str) -> list[FactToken]:
    """Split a sentence into tokens; contractions and possessives become two."""
    tokens: list[FactToken] = []
    for match in _TOKEN.finditer(text):
        kind, written = match.lastgroup or "sign", match[0]
        folded = normalize("NFKC", written).casefold().replace("\u2019", "'")
        first, *rest = _parts(kind, folded)
        tokens.append(FactToken(kind, first, written, match.start()))
        tokens.extend(FactToken(kind, part, part, match.start()) for part in rest)
    return tokens


def _parts(kind: str, word: str) -> list[str]:
    if kind == "dotted":
        return [word.replace(".", "")]
    if kind != "word":
        return [word]
    if word in _CONTRACTIONS:
        return _CONTRACTIONS[word]
    if word.endswith("n't"):
        return [word[:-3], "not"]
    if word.endswith("'s"):
        return [word[:-2], "'s"]
    return [word[:-1], "'s"] if word.endswith("s'") else [word]
