"""Option grammars of command-line programs: data files, a validating loader, and one parser for all of them.

A program is described in `data/*.grammar` (`loader` has the format). `program(name)` returns its grammar, `parse`
applies it to the arguments, and `effects.analyze_program` reports what the command does.
"""

from qwed.guards._shell.grammar.loader import GrammarError, Library, library, program
from qwed.guards._shell.grammar.model import Command, Option, Outcome, Slot
from qwed.guards._shell.grammar.parser import Argument, ParsedCommand, parse

__all__ = [
    "Argument",
    "Command",
    "GrammarError",
    "Library",
    "Option",
    "Outcome",
    "ParsedCommand",
    "Slot",
    "library",
    "parse",
    "program",
]
