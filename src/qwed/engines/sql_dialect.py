"""Names of SQL dialects."""

from qwed.engines._sql.lexer import rules_by_dialect
from qwed.model.data_files import read_mapping

KNOWN_DIALECTS = tuple(sorted(rules_by_dialect().keys() - {""}))
ALIASES = {
    **dict.fromkeys(("", "generic", "ansi", "sql", "standard"), ""),
    **read_mapping(__file__, "dialect_aliases.txt"),
}


def dialect_named(name: object) -> str | None:
    """Return the plain name of a dialect, the empty string for generic SQL, or None for an unknown name."""
    if not isinstance(name, str):
        return None
    word = name.strip().lower()
    word = ALIASES.get(word, word)
    return word if word == "" or word in KNOWN_DIALECTS else None
