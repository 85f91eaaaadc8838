"""What the name of a parameter tells about its value: a statement, a command, code, a file, an address, mere text."""

import re
from functools import lru_cache
from typing import NamedTuple

from qwed.kernel.tools import words_of

_LONGEST = 64

_QUERY = r"\w*sql|\w*query|queries|\w*stmt|statements?|q|(?:\w*_)?(?:sql|query|statement)_(?:text|string|str|body)"
_SQL = r"\w*sql|\w*stmt|(?:\w*_)?sql_(?:query|queries|statements?|text|string|str|body)"
_COMMAND = r"commands?|cmds?|cmdline|commandline|command_line|shell|bash|sh|zsh|powershell|pwsh|scripts?|argv"
_CODE = r"code|python3?|py|javascript|js|typescript|ts|program|snippet"
_CONTENT = (
    r"contents?|body|texts?|messages?|descriptions?|titles?|comments?|notes?|summary|markdown|html|str|string"
    r"|instructions?|prompts?|thoughts?|insights?|observations?"
)
_FILE = (
    r"paths?|files?|dirs?|director(?:y|ies)|folders?|filepaths?|filenames?|file_names?|pathnames?|dirname|workdir|cwd"
)
_PERHAPS_FILE = r"sources?|destinations?|src|dst|dest|roots?|targets?|uris?|locations?|inputs?|outputs?|from|to|old|new"
_GOAL = r"destinations?|dst|dest|to|new|outputs?|targets?|(?:destination|dst|dest|to|new|output|target)_\w+"
_URL = r"urls?|uris?|href|endpoints?|webhooks?"
_HOST = r"hosts?|hostnames?|domains?|proxy"
_PERHAPS_HOST = r"servers?|address|links?|sites?|websites?|ip(?:_address)?"
_DATABASE = r"db|database|(?:db|database)_\w+|sql_\w+|\w*sql|dialect|dsn|connection_string"


def _last(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\w*_)?(?:{words})")


_PATTERNS = (
    *map(_last, (_QUERY, _SQL, _COMMAND, _CODE, _CONTENT, _FILE, _PERHAPS_FILE, _GOAL, _URL)),
    re.compile(rf"(?:\w*_)?(?:{_HOST})|{_PERHAPS_HOST}"),
    _last(_DATABASE),
)


class Name(NamedTuple):
    """A parameter's name as words (`sqlQuery` and `SQL-query` are `sql_query`), and what it tells."""

    plain: str
    query: bool
    sql: bool
    """It tells of SQL and of nothing else."""
    command: bool
    code: bool
    content: bool
    """Text that is kept or sent as it is, and never run."""
    file: bool
    perhaps_file: bool
    goal: bool
    """Where something is moved or copied to."""
    url: bool
    host: bool
    database: bool


@lru_cache(maxsize=4096)
def read_name(name: str) -> Name:
    """What a parameter of this name tells."""
    plain = "_".join(words_of(name[:_LONGEST]))
    return Name(plain, *(pattern.fullmatch(plain) is not None for pattern in _PATTERNS))
