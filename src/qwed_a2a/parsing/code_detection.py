"""Detection of Python programs in text that is not marked as code."""

import ast
import keyword
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from qwed.guards.python_code import RELEVANT_WORDS, findings
from qwed.model import EffectKind
from qwed.model.unicode_normal import limit_combining_marks, normalize
from qwed_a2a.guards.patterns import patterns_in
from qwed_a2a.parsing.parse_limits import ParseBudget

_IMPORT = re.compile(r"(?m)^[ \t]*(?:import[ \t]+[\w.]+|from[ \t]+[\w.]+[ \t]+import\b)")
_CALL = re.compile(r"[\w\])\"'][ \t]*[(\[]")
_IMPORTS_ONLY = re.compile(
    r"(?:[ \t]*(?:import[ \t]+[\w., \t]+|from[ \t]+[\w.]+[ \t]+import[ \t]+[\w., \t*]+)?(?:\n|\Z))*+"
)
_ASIDE = re.compile(r"\s*(\w+)[ \t]+\([\w ,.;-]*\)\.?\s*")
"""A word and a parenthesis after it, as in prose: `ok (open)`."""
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
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_EFFECT_WORDS = RELEVANT_WORDS | {"import", "def", "class"}
MAX_IMPORTS = 50
"""Imports in a text that is not one program; a text with more is treated as a program."""
MAX_CUTS = 6
MAX_PARSED_LENGTH, MAX_RESOLVED_LENGTH = 32_768, 1_536
"""Length limits in characters for parsing, and for resolving names. A longer text that is a program, imports something
or contains a dangerous pattern is treated as a program, and a guard decides."""
_PARSE_COST, _RESOLVE_COST, _BRACE_COST = 100, 20, 12
"""Costs in parsed characters: of one parse beyond its length, of resolving one character, and of one brace, because the
braces in an f-string are parsed separately."""


def has_effect_words(text: str) -> bool:
    """Return True if it contains a word by which a program has effects. NFKC first, because Python reads full-width
    letters as plain ones."""
    return not _EFFECT_WORDS.isdisjoint(_WORDS.findall(normalize("NFKC", text)))


def command_language(text: str) -> str | None:
    """Return the language of an untagged block or member whose first line is a command, or None."""
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    return "bash" if _COMMAND.match(first) else "sql" if _STATEMENT.match(first) else None


def is_fenced_program(text: str, budget: ParseBudget) -> bool:
    """Return True if an untagged block is code: a dangerous pattern, or Python that calls or imports."""
    if patterns_in(text) or len(text) > MAX_PARSED_LENGTH:
        return _has_import_or_pattern(text)
    try:
        tree = _parse_or_none(text, budget) if _IMPORT.search(text) or _CALL.search(text) else None
    except _UnparsableProgramError:
        return True
    return tree is not None and any(isinstance(node, (*_DEFINITIONS, ast.Call)) for node in ast.walk(tree))


def _has_import_or_pattern(text: str) -> bool:
    return bool(_IMPORT.search(text) or patterns_in(text))


def find_program(text: str, budget: ParseBudget) -> str | None:
    """Return the Python program that a plain text is or contains, or None if it would have no effect."""
    if len(text) > MAX_PARSED_LENGTH:
        return text if _has_import_or_pattern(text) or _begins_as_program(text, budget) else None
    if not has_effect_words(text):
        return None
    try:
        return text if _is_program(text, budget) else _find_embedded_program(text, budget)
    except _UnparsableProgramError:
        return text


def _find_embedded_program(text: str, budget: ParseBudget) -> str | None:
    """Return the program in a text that is not one program as a whole, or None."""
    imports = [match.start() for match in _IMPORT.finditer(text)]
    if len(imports) > MAX_IMPORTS:
        return text
    candidates = [*_import_blocks(text, imports, budget), *_paragraphs(text), *_repl_input(text)]
    effective = [
        candidate for candidate in candidates if candidate.is_program or _is_effective_program(candidate.code, budget)
    ]
    calling = [
        candidate for candidate in candidates if _has_call(candidate.code) and _parse_or_none(candidate.code, budget)
    ]
    # One candidate may use a name that another binds, so the effects are determined for all of them joined.
    unique = {
        candidate.code.strip("\n"): candidate.code
        for candidate in reversed(candidates)
        if _belongs_to_program(candidate, effective, calling)
    }
    joined = "\n".join(reversed(unique.values()))
    return joined if effective or (calling and _has_effects(joined, budget)) else None


def _belongs_to_program(candidate: "_Candidate", *groups: Sequence["_Candidate"]) -> bool:
    return bool(_IMPORTS_ONLY.fullmatch(candidate.code) and candidate.code.strip()) or any(
        candidate in group for group in groups
    )


def _is_effective_program(code: str, budget: ParseBudget) -> bool:
    return has_effect_words(code) and not _IMPORTS_ONLY.fullmatch(code) and _is_program(code, budget)


class _Candidate(NamedTuple):
    code: str
    is_program: bool = False
    """True if it is known to be a program; imports alone may be a sentence, or a line of a traceback."""


def _import_blocks(text: str, imports: Sequence[int], budget: ParseBudget) -> Iterator[_Candidate]:
    """Yield the programs that begin with an import; an import inside one of them does not begin another."""
    end = 0
    for start in imports:
        if start >= end:
            code, length = _leading_program(text[start:], budget)
            if code.strip():
                end = start + length
                yield _Candidate(code, is_program=_IMPORTS_ONLY.fullmatch(code) is None)


def _paragraphs(text: str) -> Iterator[_Candidate]:
    return (_Candidate(textwrap.dedent(part)) for part in _PARAGRAPH.split(text))


def _repl_input(text: str) -> Iterator[_Candidate]:
    """Yield the code typed at a Python prompt."""
    typed = _PROMPTED.findall(text) if ">>>" in text else ()
    if typed:
        yield _Candidate("\n".join(typed))


def _begins_as_program(text: str, budget: ParseBudget) -> bool:
    """Return True if a long text that calls a function with effects is Python as far as it is parsed."""
    if "(" not in text or not any(call[1] in _EFFECT_WORDS for call in _CALLED.finditer(text)):
        return False
    lines = text[:MAX_PARSED_LENGTH].rpartition("\n")[0].split("\n")
    return len(_parsable_lines("\n".join(lines), budget)) > len(lines) // 2


def _leading_program(text: str, budget: ParseBudget) -> tuple[str, int]:
    """Return the program at the start of a text, and its length in the text."""
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    block = takewhile(lambda line: line.startswith(indent) or not line.strip(), text.split("\n"))
    source_lines = list(block)
    lines = _parsable_lines(textwrap.dedent("\n".join(source_lines)), budget)
    return "\n".join(lines), len("\n".join(source_lines[: len(lines)]))


def _parsable_lines(code: str, budget: ParseBudget) -> list[str]:
    """Return the lines of a program up to the first that does not parse."""
    lines = code.split("\n")
    for _ in range(MAX_CUTS):
        try:
            _parse("\n".join(lines), budget)
        except SyntaxError as error:
            lines = lines[: min(error.lineno or 1, len(lines)) - 1]
        except (ValueError, OverflowError):
            break
        else:
            return lines
    return []


def _has_call(text: str) -> bool:
    aside = _ASIDE.fullmatch(text)
    return bool(_CALL.search(text)) and (aside is None or aside[1] in _EFFECT_WORDS)


def _is_program(text: str, budget: ParseBudget) -> bool:
    tree = _parse_or_none(text, budget) if _IMPORT.search(text) or _has_call(text) else None
    if tree is None:
        return False
    return any(isinstance(node, _DEFINITIONS) for node in tree.body) or _has_effects(text, budget)


def _has_effects(code: str, budget: ParseBudget) -> bool:
    if len(code) > MAX_RESOLVED_LENGTH:
        return True
    budget.take("parsed", _RESOLVE_COST * len(code))
    result = findings(code)
    has_known_effect = any(effect.kind is not EffectKind.UNRESOLVED for effect in result.effects)
    return bool(has_known_effect or result.violations or result.syntax_error or patterns_in(code))


def _parse_or_none(text: str, budget: ParseBudget) -> ast.Module | None:
    words = _PROSE.match(text)
    # Two adjacent words are not Python unless one of them is a keyword.
    if words is not None and _KEYWORDS.isdisjoint(words.groups()):
        return None
    try:
        return _parse(text, budget)
    except (SyntaxError, ValueError, OverflowError):
        return None


class _UnparsableProgramError(Exception):
    """The text is Python that this interpreter cannot parse: a guard decides, which refuses it."""


def _parse(text: str, budget: ParseBudget) -> ast.Module:
    budget.take("parsed", len(text) + _PARSE_COST + _BRACE_COST * text.count("{"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # Python normalises names, which is slow for many combining marks.
            return ast.parse(limit_combining_marks(text))
        except (RecursionError, MemoryError):
            raise _UnparsableProgramError from None
        except SyntaxError as error:
            if _is_newer_syntax(error):
                raise _UnparsableProgramError from None
            raise


def _is_newer_syntax(error: SyntaxError) -> bool:
    """Return True if a newer version of Python may accept what this one does not."""
    return error.msg.startswith("f-string") or bool(_NEWER_STATEMENT.match(error.text or ""))


_NEWER_STATEMENT = re.compile(
    r"[ \t]*(?:type[ \t]+\w+[ \t]*[=\[]|(?:(?:async[ \t]+)?def|class)[ \t]+\w+[ \t]*\["
    r"|except\*?[ \t]+[\w.]+[ \t]*,.*:\s*$|lazy[ \t]+(?:import|from)[ \t]|.*\b(?:[tT][rR]?|[rR][tT])[\"'])"
)
"""Lines that only Python 3.12 and later accept: type aliases and parameters, `except` of several types without
parentheses, lazy imports, template strings."""
