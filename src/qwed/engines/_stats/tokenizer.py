"""Tokenizer of the stats engine's claims, and the cursor that the parsers share."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple, TypeVar

from qwed.engines._stats.duckdb_session import Column

MAX_CHARACTERS = 2_000
MAX_TOKENS = 300

_FOLDED = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "“": '"',
        "”": '"',
        "\u2212": "-",
        "\u2013": "-",
        "\u00a0": " ",
        "≥": ">=",
        "≤": "<=",
        "≠": "!=",
    }
)
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<date>\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?(?![\d-]))
  | (?P<ordinal>\d+(?:\.\d+)?(?:st|nd|rd|th)\b)
  | (?P<number>-?[$€£]?-?(?:\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?(?![\w.]*\w))
  | (?P<string>'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=|>=|!=|<>|==|±|\+/-|[<>=~≈%(),*?.:])
    )""",
    re.VERBOSE,
)


class ClaimSyntaxError(Exception):
    """The claim is outside the grammar; the message names the position."""


class ClaimToken(NamedTuple):
    """Token of a claim; `text` is its value without quotes, `at` its position."""

    kind: str
    text: str
    at: int
    depth: int = 0


Meaning = TypeVar("Meaning")
Phrases = Mapping[tuple[str, ...], Meaning]


def phrase_table(table: Mapping[str, Meaning]) -> dict[tuple[str, ...], Meaning]:
    """Build a phrase table from keys that separate alternatives with `|` and words with spaces."""
    return {tuple(choice.split()): meaning for keys, meaning in table.items() for choice in keys.split("|")}


def tokenize_claim(claim: str) -> list[ClaimToken]:
    """Return the tokens of the claim. Raise ClaimSyntaxError at the first character outside the grammar."""
    if len(claim) > MAX_CHARACTERS:
        raise ClaimSyntaxError(f"the claim is longer than {MAX_CHARACTERS} characters")
    text = claim.translate(_FOLDED).strip().rstrip(".!;").strip()
    tokens: list[ClaimToken] = []
    at = depth = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None or len(tokens) == MAX_TOKENS:
            raise ClaimSyntaxError(f"not understood from `{text[at : at + 30].strip()}` on")
        kind, word = match.lastgroup, match[match.lastgroup]
        depth += (word == "(") - (word == ")")
        if kind == "number" and "," in word and depth:
            raise ClaimSyntaxError(f"`{word}` inside brackets may be one number or two")
        tokens.append(ClaimToken(kind, _token_text(kind, word), match.start(match.lastgroup), depth))
        at = match.end()
    return tokens


def _token_text(kind: str, word: str) -> str:
    if kind == "string":
        return word[1:-1].replace("''", "'")
    if kind == "name":
        return word[1:-1].replace('""', '"') if word[0] == '"' else word[1:-1]
    if kind == "number":
        return re.sub(r"[$€£,]", "", word)
    return word


class ClaimCursor:
    """Position in the tokens of a claim."""

    def __init__(self, tokens: list[ClaimToken], columns: Iterable[Column]) -> None:
        self.tokens = tokens
        self.at = 0
        self.used: dict[str, Column] = {}
        self._columns: dict[str, list[Column]] = {}
        for column in columns:
            self._columns.setdefault(_normalise_name(column.name), []).append(column)

    @property
    def here(self) -> ClaimToken:
        """Next token, or an `end` token."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ClaimToken("end", "", -1)

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def fail(self, expected: str) -> ClaimSyntaxError:
        """Return the error for a missing element."""
        actual = f"`{self.here.text[:40]}`" if not self.done else "the end"
        return ClaimSyntaxError(f"expected {expected} and found {actual}")

    def take(self, *words: str) -> bool:
        """Consume these words or signs and return True, or return False if others follow."""
        for offset, word in enumerate(words):
            index = self.at + offset
            if index >= len(self.tokens) or self.tokens[index].kind not in ("word", "sign"):
                return False
            if self.tokens[index].text.casefold() != word:
                return False
        self.at += len(words)
        return True

    def skip(self, *words: str) -> None:
        """Consume any number of these words, in any order."""
        while any(self.take(word) for word in words):
            pass

    def phrase(self, table: Phrases[Meaning]) -> Meaning | None:
        """Consume the longest matching phrase of the table and return its meaning, or None."""
        for words in sorted(table, key=len, reverse=True):
            if self.take(*words):
                return table[words]
        return None

    def column(self) -> Column | None:
        """Consume the longest column name that follows and return its column, or None."""
        if self.here.kind in ("name", "string"):
            column = self._take_column(self.here.text, 1)
            if column is None and self.here.kind == "name":
                raise ClaimSyntaxError(f"there is no column `{self.here.text[:60]}`")
            return column
        words: list[str] = []
        for token in self.tokens[self.at : self.at + 12]:
            if token.kind not in ("word", "number") or (token.kind == "number" and not words):
                break
            words.append(token.text)
        for length in range(len(words), 0, -1):
            column = self._take_column(" ".join(words[:length]), length)
            if column is not None:
                return column
        return None

    def _take_column(self, name: str, length: int) -> Column | None:
        candidates = self._columns.get(_normalise_name(name), [])
        exact = [column for column in candidates if column.name.casefold() == name.casefold()]
        candidates = exact or candidates
        if len(candidates) > 1:
            raise ClaimSyntaxError(f"`{name[:60]}` names more than one column")
        if not candidates:
            return None
        self.at += length
        self.used[candidates[0].name] = candidates[0]
        return candidates[0]

    def number(self) -> Decimal | None:
        """Consume a number, with `thousand`, `million` or `billion` behind it, and return it, or None."""
        if self.here.kind != "number":
            return None
        value = Decimal(self.here.text)
        self.at += 1
        return value.scaleb(self.phrase(_SCALES) or 0)


_SCALES = phrase_table({"thousand": 3, "million": 6, "billion": 9, "trillion": 12})


def _normalise_name(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.casefold().strip()))
