"""The stats engine's words: a claim cut into tokens, and the cursor that reads them."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple, TypeVar

from qwed.engines._stats.duck import Column

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


class NotUnderstood(Exception):
    """The claim is outside the grammar; says where."""


class Token(NamedTuple):
    """One word of a claim; `text` is what it means, `at` where it stands."""

    kind: str
    text: str
    at: int
    depth: int = 0


Meaning = TypeVar("Meaning")
Phrases = Mapping[tuple[str, ...], Meaning]


def phrases(table: Mapping[str, Meaning]) -> dict[tuple[str, ...], Meaning]:
    """A table whose keys are spelt with spaces and `|` for choices of whole phrases."""
    return {tuple(choice.split()): meaning for keys, meaning in table.items() for choice in keys.split("|")}


def tokens_of(claim: str) -> list[Token]:
    """The tokens of a claim, or NotUnderstood at the first character that belongs to none."""
    if len(claim) > MAX_CHARACTERS:
        raise NotUnderstood(f"the claim is longer than {MAX_CHARACTERS} characters")
    text = claim.translate(_FOLDED).strip().rstrip(".!;").strip()
    found: list[Token] = []
    at = depth = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None or len(found) == MAX_TOKENS:
            raise NotUnderstood(f"not understood from `{text[at : at + 30].strip()}` on")
        kind, word = match.lastgroup, match[match.lastgroup]
        depth += (word == "(") - (word == ")")
        if kind == "number" and "," in word and depth:
            raise NotUnderstood(f"`{word}` inside brackets may be one number or two")
        found.append(Token(kind, _meaning(kind, word), match.start(match.lastgroup), depth))
        at = match.end()
    return found


def _meaning(kind: str, word: str) -> str:
    if kind == "string":
        return word[1:-1].replace("''", "'")
    if kind == "name":
        return word[1:-1].replace('""', '"') if word[0] == '"' else word[1:-1]
    if kind == "number":
        return re.sub(r"[$€£,]", "", word)
    return word


class Cursor:
    """Where the reading of a claim stands."""

    def __init__(self, tokens: list[Token], columns: Iterable[Column]) -> None:
        self.tokens = tokens
        self.at = 0
        self.used: dict[str, Column] = {}
        self._columns: dict[str, list[Column]] = {}
        for column in columns:
            self._columns.setdefault(_key(column.name), []).append(column)

    @property
    def here(self) -> Token:
        """The next token; an empty one at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else Token("end", "", -1)

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def fail(self, wanted: str) -> NotUnderstood:
        """What to raise where something else was wanted."""
        seen = f"`{self.here.text[:40]}`" if not self.done else "the end"
        return NotUnderstood(f"expected {wanted} and found {seen}")

    def take(self, *words: str) -> bool:
        """Whether the next tokens are these words or signs; then they are read."""
        for offset, word in enumerate(words):
            index = self.at + offset
            if index >= len(self.tokens) or self.tokens[index].kind not in ("word", "sign"):
                return False
            if self.tokens[index].text.casefold() != word:
                return False
        self.at += len(words)
        return True

    def skip(self, *words: str) -> None:
        """Read any number of these, in any order."""
        while any(self.take(word) for word in words):
            pass

    def phrase(self, table: Phrases[Meaning]) -> Meaning | None:
        """What the longest phrase of a table that stands here means."""
        for words in sorted(table, key=len, reverse=True):
            if self.take(*words):
                return table[words]
        return None

    def column(self) -> Column | None:
        """The column whose name stands here, the longest one where there are several."""
        if self.here.kind in ("name", "string"):
            found = self._known(self.here.text, 1)
            if found is None and self.here.kind == "name":
                raise NotUnderstood(f"there is no column `{self.here.text[:60]}`")
            return found
        words: list[str] = []
        for token in self.tokens[self.at : self.at + 12]:
            if token.kind not in ("word", "number") or (token.kind == "number" and not words):
                break
            words.append(token.text)
        for length in range(len(words), 0, -1):
            found = self._known(" ".join(words[:length]), length)
            if found is not None:
                return found
        return None

    def _known(self, name: str, length: int) -> Column | None:
        found = self._columns.get(_key(name), [])
        exact = [column for column in found if column.name.casefold() == name.casefold()]
        found = exact or found
        if len(found) > 1:
            raise NotUnderstood(f"`{name[:60]}` names more than one column")
        if not found:
            return None
        self.at += length
        self.used[found[0].name] = found[0]
        return found[0]

    def number(self) -> Decimal | None:
        """The number that stands here, with `thousand`, `million` or `billion` behind it."""
        if self.here.kind != "number":
            return None
        value = Decimal(self.here.text)
        self.at += 1
        return value.scaleb(self.phrase(_SCALES) or 0)


_SCALES = phrases({"thousand": 3, "million": 6, "billion": 9, "trillion": 12})


def _key(name: str) -> str:
    return " ".join(re.split(r"[\s_-]+", name.casefold().strip()))
