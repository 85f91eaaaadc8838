"""State of a script during analysis: variables, current directory, and the report."""

import re

from qwed.guards._shell.command_model import ShellReport, StatementJudge, Violation, Word
from qwed.guards._shell.env_variables import analyze_assignment
from qwed.guards._shell.facts import program_path
from qwed.guards._shell.listings import is_home, may_hold_secrets, may_read_secrets
from qwed.guards._shell.parse import MAX_LENGTH
from qwed.guards._shell.variables import VariableHistory, Variables
from qwed.guards.file_effects import file_effects
from qwed.model import EffectKind

MAX_INNER = 64
MAX_LEFT = 8
_FILE_DATABASES = frozenset({"sqlite", "duckdb"})
"""Dialects of databases that are a file of this machine."""
SOCKET = re.compile(r"/dev/(?:tcp|udp)/")
"""Path that bash turns into a network connection."""
_SILENT = frozenset({"", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_DESCRIPTOR = re.compile(r"/dev/fd/\d+|/proc/self/fd/[012]")
_ABSOLUTE = re.compile(r"[/~]|[A-Za-z][\w+.-]*:")
_PARENTS = re.compile(r"(?:\./|[^/.]+/\.\./)*\.\.(?:/\.\.)*/?\.?")
"""Directories above the project, of which nobody knows what they hold."""
_VARIABLE = re.compile(r"\$(?:\{\w+\}|\w+|[!?#$@*-])")
_ADDRESS = re.compile(r"(?!file:)[A-Za-z][\w+.-]*://")


class Scope:
    """Variables and directory of one script."""

    def __init__(self, history: VariableHistory) -> None:
        self.report = ShellReport()
        self.judge: StatementJudge | None = None
        """Judge of the statements that a database client is given."""
        self.directory = ""
        self.variables = Variables(history)
        self.exported: set[str] = set()
        """Variables that the script puts into the environment."""
        self._inner = 0
        self._directory_unknown = False
        self._has_moved = False
        """True after a `cd` from an unknown directory: if it fails, the next commands run in that directory."""
        self.entered = False
        """True where a command only runs if the `cd` before it has worked."""
        self.previous_directories: tuple[str, ...] = ()
        """Directories that were entered before the current one."""
        self.in_test = False
        """True inside a test expression."""
        self._tested: list[str] = []
        self._is_traced = False
        self.connects = False
        """True if the words are for a database client."""
        self.ifs_changed = False
        """True if words may be split in another way."""
        self.in_map = False
        """True inside `declare -A`."""

    def note_tested(self, text: str) -> None:
        """Note that a test reads a secret, which it shows only if commands are traced."""
        self._tested.append(text)
        if self._is_traced:
            self.report.add_effect(EffectKind.SECRET, text)

    def trace_commands(self) -> None:
        """Note that the shell prints its commands with their values."""
        self._is_traced = True
        for text in self._tested:
            self.report.add_effect(EffectKind.SECRET, text)

    def can_analyze_inner(self, text: str) -> bool:
        """Return True if one more nested text may be analysed; bounds the total work."""
        self._inner += 1
        if self._inner <= MAX_INNER and len(text) <= MAX_LENGTH:
            return True
        self.report.add_unresolved("too many commands are hidden in strings")
        return False

    def add_file_effect(self, kind: EffectKind, word: Word) -> None:
        """Add an effect on the file that a word names."""
        text = word.text
        if SOCKET.match(text):
            self.report.add_violation(Violation.REVERSE_SHELL)
            self.report.add_effect(EffectKind.NETWORK, text)
        elif kind is EffectKind.READ and _ADDRESS.match(text):
            self.report.add_effect(EffectKind.NETWORK, text)
        elif not _is_silent(kind, text):
            for path in self._resolve_paths(text):
                self.report.add_effect(kind, path)
            self.add_path_facts(kind, text, certain=word.is_as_written)
            if word.is_computed and word.pattern and kind is EffectKind.READ:
                self.add_tree_read(word)
            if word.any_name and kind is EffectKind.READ:
                self._add_any_name(word)
            self._add_without_variables(kind, word)
            if not word.is_resolved or (self._directory_unknown and not _ABSOLUTE.match(text)):
                self.report.add_unresolved(f"`{text[:64]}` is known only at run time")

    def add_path_facts(self, kind: EffectKind, text: str, *, certain: bool) -> None:
        """Add a path to the facts only: that of a file with which code inside the script works."""
        is_here = self.entered or not self._has_moved or _ABSOLUTE.match(text) is not None
        for path in self._resolve_paths(text):
            self.report.facts.add_path(kind, path, certain=certain and is_here)

    def _add_any_name(self, word: Word) -> None:
        """Add the secrets among files that nobody named and that are opened."""
        for path in self._resolve_paths(word.text):
            if is_home(path) or (may_hold_secrets(path) and not word.is_summarized):
                self.report.add_effect(EffectKind.SECRET, f"any file in {path}")

    def _add_without_variables(self, kind: EffectKind, word: Word) -> None:
        """Add the effect on the file that a word names if its variables are empty."""
        rest = "" if word.is_exact else _VARIABLE.sub("", word.text)
        if rest not in (word.text, ""):
            secrets = [path for path in self._resolve_paths(rest) if len(file_effects(kind, path)) > 1]
            for path in secrets:
                self.report.add_effect(kind, path)
                self.report.facts.add_path(kind, path, certain=False)

    def judge_sql(self, name: str, sql: str, dialect: str) -> None:
        """Report the effects of the statements that a database client is given."""
        if self.judge is None:
            self.report.add_unresolved(f"the statements of `{name}` are not judged here")
            return
        findings = self.judge(sql, dialect)
        self.report.facts.add_sql(findings.facts)
        if dialect in _FILE_DATABASES and any(effect.kind is not EffectKind.READ for effect in findings.effects):
            self.report.facts.note_unlisted()  # the file of the database is written
        self.report.add_effect(EffectKind.READ, f"database://{name}")
        for effect in findings.effects:
            if effect.kind is not EffectKind.READ:
                self.report.add_effect(effect.kind, f"database://{name}/{effect.target}")
        for effect in findings.files:
            self.add_file_effect(effect.kind, Word(effect.target))
        for violation in findings.violations:
            self.report.add_violation(violation)
        for reason in findings.unresolved:
            self.report.add_unresolved(reason)

    def add_tree_read(self, word: Word) -> None:
        """Add a read of every file below the directory that a word names."""
        for path in self._resolve_paths(word.text):
            if may_read_secrets(path) or _PARENTS.fullmatch(path):
                self.report.add_effect(EffectKind.SECRET, path)

    def program_path(self, text: str) -> str:
        """Return the path of a program that is named by its path."""
        return program_path(text, self.directory)

    def change_directory(self, word: Word) -> None:
        """Change the directory that relative paths start from."""
        self._has_moved |= not self.directory
        self._directory_unknown = not word.is_resolved or (self._directory_unknown and not _ABSOLUTE.match(word.text))
        self.previous_directories = tuple(dict.fromkeys((*self.previous_directories, *filter(None, [self.directory]))))
        self._directory_unknown |= len(self.previous_directories) > MAX_LEFT
        self.directory = _join_path(self.directory, word.text)

    def _resolve_paths(self, text: str) -> list[str]:
        """Return the path relative to the current and to earlier directories, because `cd` may have failed."""
        if _ABSOLUTE.match(text):
            return [text]
        return list(
            dict.fromkeys(_join_path(start, text) for start in (self.directory, *self.previous_directories[:MAX_LEFT]))
        )

    def assign(self, name: str, values: list[Word]) -> None:
        """Assign one of several values to a variable of the shell."""
        self.ifs_changed |= name == "IFS"
        analyze_assignment(self.report, name, values, exported=name in self.exported)
        self.variables.assign(name, values)

    def forget(self, name: str) -> None:
        """Note that a variable gets a value that is not known."""
        self.assign(name, [])

    def export(self, name: str) -> None:
        """Put a variable with its present value into the environment."""
        self.exported.add(name)
        if self.variables.is_assigned(name):
            analyze_assignment(self.report, name, self.lookup(name) or [], exported=True)

    def is_integer(self, name: str) -> bool:
        """Return True if a variable certainly holds an integer."""
        return self.variables.is_integer(name)

    def is_inherited(self, name: str) -> bool:
        """Return True if the script does not assign the variable."""
        return self.variables.is_inherited(name)

    def lookup(self, name: str) -> list[Word] | None:
        """Return the possible values of a variable, or None if they are not known."""
        return self.variables.lookup(name)


def _is_silent(kind: EffectKind, text: str) -> bool:
    """Return True for the standard streams; a dash is one to programs that read, and a file to those that write."""
    if kind is EffectKind.DELETE:
        return not text
    return text in _SILENT or (text == "-" and kind is EffectKind.READ) or _DESCRIPTOR.fullmatch(text) is not None


def _join_path(start: str, text: str) -> str:
    if not start or _ABSOLUTE.match(text):
        return text
    return start if text == "." else f"{start.rstrip('/')}/{text.removeprefix('./')}"
