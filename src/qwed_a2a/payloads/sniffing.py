"""Whether a text that nothing says to be code is a Python program all the same."""

import ast
import keyword
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from qwed.guards.code_words import CodeFindings
from qwed.guards.python_code import TELLING, findings, findings_at_a_glance
from qwed.words import EffectKind
from qwed.words.normal import normalize, with_few_marks
from qwed_a2a.guards.patterns import patterns_in
from qwed_a2a.payloads.budget import Budget

_IMPORT = re.compile(r"(?m)^[ \t]*(?:import[ \t]+[\w.]+|from[ \t]+[\w.]+[ \t]+import\b)")
_CALL = re.compile(r"[\w\])\"'][ \t]*[(\[]")
_IMPORTS_ONLY = re.compile(
    r"(?:[ \t]*(?:import[ \t]+[\w., \t]+|from[ \t]+[\w.]+[ \t]+import[ \t]+[\w., \t*]+)?(?:\n|\Z))*+"
)
_ASIDE = re.compile(r"\s*(\w+)[ \t]+\([\w ,.;-]*\)\.?\s*")
"""A word and something in parentheses after it, as prose has them: `ok (open)`."""
_COMMAND = re.compile(
    r"[ \t]*(?:[$%>][ \t]+)?(?:sudo[ \t]+)?(?:apt|apt-get|bash|brew|chmod|chown|cp|crontab|curl|dd|docker|git|kill"
    r"|killall|kubectl|mkfs|mv|nc|ncat|node|npm|npx|pip3?|pkill|powershell|python3?|rm|scp|sh|ssh|systemctl|wget|yum|zsh"
    r"|Invoke-\w+|Remove-Item)[ \t]+[-/.~$\"'\w(]"
)
_STATEMENT = re.compile(
    r"\s*(?:(?:drop|truncate|alter|grant|revoke)\s+\w|delete\s+from\s|insert\s+into\s|update\s+\S+\s+set\s)",
    re.IGNORECASE,
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_CALLED = re.compile(r"\b(\w{1,64})[ \t]{0,8}\(")
_PROMPTED = re.compile(r"(?m)^[ \t]*(?:>>>|\.\.\.) (.*)$")
_WORDS = re.compile(r"\w+")
_PROSE = re.compile(r"\s*(\w+)[ \t]+(\w+)")
_KEYWORDS = frozenset((*keyword.kwlist, *keyword.softkwlist))
_MEANT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_TELLING = TELLING | {"import", "def", "class"}
MAX_TRIED = 50
"""Imports in a text that is no program as a whole: with more of them it is taken for one."""
MAX_CUTS = 6
LONGEST, MAX_FOLLOWED = 32_768, 1_536
"""Characters that are parsed, and whose names are followed. What is longer and imports something or has a pattern of
the document is taken for a program, and a guard decides."""
_A_TRY, _A_FOLLOWED, _A_FIELD = 100, 20, 12
"""What a try costs beside its characters, following one of them, and a brace, which in a text is parsed on its own: in
characters that are parsed."""


def may_do_something(text: str) -> bool:
    """Whether it has a word by which a program does anything; Python reads wide letters as plain ones."""
    return not _TELLING.isdisjoint(_WORDS.findall(normalize("NFKC", text)))


def commands_in(text: str) -> str | None:
    """The language of a block or a member without a name whose first line is a command that does something."""
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return "bash" if _COMMAND.match(first) else "sql" if _STATEMENT.match(first) else None


def is_fenced_program(text: str, budget: Budget) -> bool:
    """Whether a block without a name is code: a pattern of the document, or Python that calls or imports."""
    if patterns_in(text) or len(text) > LONGEST:
        return _is_telling(text)
    tree = _tree(text, budget) if _IMPORT.search(text) or _CALL.search(text) else None
    return tree is not None and any(isinstance(node, (*_MEANT, ast.Call)) for node in ast.walk(tree))


def _is_telling(text: str) -> bool:
    return bool(_IMPORT.search(text) or patterns_in(text))


def program_in(text: str, budget: Budget) -> str | None:
    """The Python program that a plain text is or holds, None where there is none that would do anything."""
    if len(text) > LONGEST:
        return text if _is_telling(text) or _begins_as_program(text, budget) else None
    if not may_do_something(text):
        return None
    if _is_program(text, budget):
        return text
    imports = [match.start() for match in _IMPORT.finditer(text)]
    if len(imports) > MAX_TRIED:
        return text
    pieces = [*_begun(text, imports, budget), *_paragraphs(text), *_prompted(text)]
    told = [piece for piece in pieces if piece.does or _tells(piece.code, budget)]
    calls = [piece for piece in pieces if _calls(piece.code) and _tree(piece.code, budget)]
    # A name that one of them binds is used in another: what one does is told by all of them together.
    apart = {piece.code.strip("\n"): piece.code for piece in reversed(pieces) if _is_python(piece, told, calls)}
    together = "\n".join(reversed(apart.values()))
    return together if told or (calls and _does_something(together, budget)) else None


def _is_python(piece: "_Piece", *others: Sequence["_Piece"]) -> bool:
    return bool(_IMPORTS_ONLY.fullmatch(piece.code) and piece.code.strip()) or any(piece in each for each in others)


def _tells(code: str, budget: Budget) -> bool:
    return may_do_something(code) and not _IMPORTS_ONLY.fullmatch(code) and _is_program(code, budget)


class _Piece(NamedTuple):
    code: str
    does: bool = False
    """Whether it is known to be a program: what only imports may as well be a sentence, or a line of a traceback."""


def _begun(text: str, imports: Sequence[int], budget: Budget) -> Iterator[_Piece]:
    """The programs that begin with an import; what is inside one of them begins none."""
    end = 0
    for start in imports:
        if start >= end:
            code, length = _from(text[start:], budget)
            if code.strip():
                end = start + length
                yield _Piece(code, does=_IMPORTS_ONLY.fullmatch(code) is None)


def _paragraphs(text: str) -> Iterator[_Piece]:
    return (_Piece(textwrap.dedent(part)) for part in _PARAGRAPH.split(text))


def _prompted(text: str) -> Iterator[_Piece]:
    """What was typed at Python's prompt."""
    typed = _PROMPTED.findall(text) if ">>>" in text else ()
    if typed:
        yield _Piece("\n".join(typed))


def _begins_as_program(text: str, budget: Budget) -> bool:
    """Whether a long text that calls what does something is Python as far as it is looked at."""
    if "(" not in text or not any(call[1] in _TELLING for call in _CALLED.finditer(text)):
        return False
    lines = text[:LONGEST].rpartition("\n")[0].split("\n")
    return len(_cut("\n".join(lines), budget)) > len(lines) // 2


def _from(text: str, budget: Budget) -> tuple[str, int]:
    """The program that begins a text, up to where it is one no more, and how many characters of the text that is."""
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    block = takewhile(lambda line: line.startswith(indent) or not line.strip(), text.split("\n"))
    written = list(block)
    lines = _cut(textwrap.dedent("\n".join(written)), budget)
    return "\n".join(lines), len("\n".join(written[: len(lines)]))


def _cut(code: str, budget: Budget) -> list[str]:
    """The lines of a program, without those from which on it is none."""
    lines = code.split("\n")
    for _ in range(MAX_CUTS):
        try:
            _parse("\n".join(lines), budget)
        except SyntaxError as wrong:
            lines = lines[: min(wrong.lineno or 1, len(lines)) - 1]
        except _SURPRISES:
            break
        else:
            return lines
    return []


def _calls(text: str) -> bool:
    aside = _ASIDE.fullmatch(text)
    return bool(_CALL.search(text)) and (aside is None or aside[1] in _TELLING)


def _is_program(text: str, budget: Budget) -> bool:
    tree = _tree(text, budget) if _IMPORT.search(text) or _calls(text) else None
    if tree is None:
        return False
    return any(isinstance(node, _MEANT) for node in tree.body) or _does_something(text, budget)


def _does_something(code: str, budget: Budget) -> bool:
    if len(code) > MAX_FOLLOWED:
        budget.take("parsed", len(code))
        return findings_at_a_glance(code) != CodeFindings()
    budget.take("parsed", _A_FOLLOWED * len(code))
    found = findings(code)
    known = any(effect.kind is not EffectKind.UNRESOLVED for effect in found.effects)
    return bool(known or found.violations or patterns_in(code))


def _tree(text: str, budget: Budget) -> ast.Module | None:
    first = _PROSE.match(text)
    # Two words side by side are no Python, unless one of them is a word of the language.
    if first is not None and _KEYWORDS.isdisjoint(first.groups()):
        return None
    try:
        return _parse(text, budget)
    except (SyntaxError, *_SURPRISES):
        return None


_SURPRISES = (RecursionError, MemoryError, ValueError, OverflowError)


def _parse(text: str, budget: Budget) -> ast.Module:
    budget.take("parsed", len(text) + _A_TRY + _A_FIELD * text.count("{"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Python brings names into a normal form.
        return ast.parse(with_few_marks(text))
