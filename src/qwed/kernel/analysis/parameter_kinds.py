"""Classifies a parameter by its name: statement, command, code, file, address or plain text."""

import re
from functools import lru_cache
from typing import NamedTuple

from qwed.kernel.tool_verbs import words_of
from qwed.model.unicode_normal import normalize

_LONGEST = 64

_AS_SQL = r"(?:text|string|str|body|content|raw|code|command|script|to_run)"
_QUERY = (
    r"\w*sql|ddl|dml|[chs]ql|prql|soql|\w*query|queries|\w*stmt|statements?|q"
    rf"|(?:\w*_)?(?:sql|query|statement)_?{_AS_SQL}"
)
_SQL = rf"\w*sql|\w*stmt|ddl|dml|(?:\w*_)?sql_?(?:query|queries|statements?|{_AS_SQL})"
_AS_TEXT = r"(?:_(?:text|strings?|str|body|content|contents|block|source|input|to_run|to_execute))*"
"""Suffixes that only say that the value is text: `script_content` is a script, not stored content."""
_COMMAND = (
    r"(?:commands?|cmds?|cmdline|commandline|command_line|shell|bash|sh|zsh|powershell|pwsh|scripts?|argv|exec|execute"
    rf"|cli){_AS_TEXT}"
)
_NOT_PROGRAM = (
    r"access|account|airport|area|auth|bank|bar|bic|booking|branch|class|color|colour|confirmation|country|coupon|course"
    r"|currency|department|dial|discount|dress|error|exit|http|iata|icao|invite|item|lang|language|locale|location|order"
    r"|otp|phone|post|postal|product|project|promo|promotion|qr|reason|reference|referral|region|response|result|return"
    r"|security|sort|state|station|status|swift|tax|tracking|two_factor|verification|voucher|zip"
)
"""Words before `code` that make it an identifier and not a program."""
_CODE = (
    rf"(?!(?:\w*_)?(?:{_NOT_PROGRAM})_code\Z)(?:\w*_)?"
    rf"(?:(?:js|py|source|script)?code|python3?|py|javascript|js|typescript|ts|program|snippet|eval|evaluate"
    rf"|apex|groovy|lua|ruby|php|perl|vba|applescript|vbscript){_AS_TEXT}"
)
_CONTENT = (
    r"contents?|body|texts?|messages?|descriptions?|titles?|comments?|notes?|summary|markdown|html|str|string"
    r"|instructions?|prompts?|thoughts?|insights?|observations?"
)
_STORED = (
    r"data|values?|patch|diff|templates?|html|css|xml|yaml|yml|csv|svg|snippets?|replacement|replace|sources?|blocks?|cells?"
    r"|pattern|regexp?|search|terms?|keywords?|examples?|samples?|subject|reason|goals?|captions?|labels?|names?"
    r"|abstract|quotes?|answers?|questions?|objectives?|criteria|steps?|plan|tags?|headline|bio|about|signature"
    r"|review|feedback|transcript|lyrics|recipe|story|prose|letter|draft|reply|caption|alt|tooltip|placeholder"
)
"""Names of what is stored, shown or searched for, and has no effect by itself."""
_FILE = (
    r"paths?|files?|dirs?|director(?:y|ies)|folders?|filepaths?|filenames?|file_names?|pathnames?|dirname|workdir|cwd"
)
_PERHAPS_FILE = r"sources?|destinations?|src|dst|dest|roots?|targets?|uris?|locations?|inputs?|outputs?|from|to|old|new"
_GOAL = r"destinations?|dst|dest|to|new|outputs?|targets?|(?:destination|dst|dest|to|new|output|target)_\w+"
_URL = r"urls?|uris?|href|endpoints?|webhooks?"
_HOST = r"hosts?|hostnames?|domains?|proxy"
_PERHAPS_HOST = r"servers?|address|links?|sites?|websites?|ip(?:_address)?"
_DATABASE = r"db|database|(?:db|database)_\w+|sql_\w+|\w*sql|dialect|dsn|connection_string"


def _ends_with(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\w*_)?(?:{words})")


_PATTERNS = (
    *map(_ends_with, (_QUERY, _SQL, _COMMAND)),
    re.compile(_CODE),
    *map(_ends_with, (_CONTENT, _STORED, _FILE, _PERHAPS_FILE, _GOAL, _URL)),
    re.compile(rf"(?:\w*_)?(?:{_HOST})|{_PERHAPS_HOST}"),
    _ends_with(_DATABASE),
)


class ParameterName(NamedTuple):
    """A parameter's name as words (`sqlQuery` and `SQL-query` are `sql_query`), and the kinds it implies."""

    plain: str
    query: bool
    sql: bool
    """The name implies SQL and nothing else."""
    command: bool
    code: bool
    content: bool
    """Text that is stored or sent unchanged, and never executed."""
    stored: bool
    file: bool
    perhaps_file: bool
    goal: bool
    """Destination of a move or a copy."""
    url: bool
    host: bool
    database: bool


_NUMBER = re.compile(r"(?<=[a-z])(?:_?v?\d{1,3})\Z")


@lru_cache(maxsize=4096)
def classify_name(name: str) -> ParameterName:
    """Return the kinds that a parameter's name implies."""
    words = words_of(normalize("NFKC", name[:_LONGEST]))
    plain = "_".join(words)
    # Numbered parameters are of the same kind: `query1`, `sql_2`, `command_v2`.
    plain = _NUMBER.sub("", plain) or plain
    return ParameterName(plain, *(pattern.fullmatch(plain) is not None for pattern in _PATTERNS))
