"""Texts that no judge reads. Who executes an action may read them all, so what is not judged must not be there."""

import re
from itertools import islice

from qwed.guards.text import strings_in
from qwed.kernel.answer import Answer, denied
from qwed.kernel.request import Action
from qwed.kernel.tools import PATH, SHELL, TOOL, TOOL_CALL, Subject
from qwed.words import ErrorCode

_FIELDS = {
    "sql": ("query", "target"),
    "code": ("code", "query", "target"),
    PATH: ("target", "query"),
    TOOL: ("target", "query"),
    SHELL: ("query",),
}
"""The fields each judge has a use for; the other engines have one for the query and what it is about."""

_BY_NAME = frozenset({"query", "sql", "statement", "sql_query", "schema_ddl", "dialect", "allowed_tables"})
"""Parameters the sql engine itself reads."""

_COMMENT = re.compile(r"/\*(?!M?!)[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)|/\*M?!\d*|\*/|--[^\n]*+(?:\n|$)|\#[^\n]*+\n")
"""What a database passes over; of a comment that MySQL or MariaDB runs, its beginning and its end."""
_BEFORE = re.compile(r"[\s;(\ufeff\u200b-\u200d\u2060]*+")
_NEXT = re.compile(
    r";\s*(?=(?:drop|delete|truncate|insert|replace|update|alter|create|grant|revoke|merge|exec|call|copy|load|if|set"
    r"|select|with|shutdown|attach|vacuum|do|begin|rename)\b)",
    re.IGNORECASE,
)
_MOST = 100
"""Statements after the first that are looked at."""
_LONGEST = 4096
"""Characters of a statement that are looked at to tell that it is one."""
_THING = (
    r"(?:table|database|schema|view|index|user|role|column|function|procedure|trigger|sequence|materialized\s+view"
    r"|extension|tablespace|synonym|publication|subscription|system)\b"
)
_OF_A_KIND = r"(?:(?:global|local|unique|virtual|external|foreign|unlogged|temp\w*)\s+)*"
_OTHER_THING = (
    r"owned\s+by\s|(?:keyspace|warehouse|login|event|type|domain|rule|policy|server|catalog|package|stage"
    r"|aggregate|operator|language|assembly|certificate|credential|routine|statistics)"
    r"\s+(?:if\s+exists\s|\S+(?:\s+on\s+\S+)?\s*(?:cascade|restrict|;|$))"
)
"""Words that mean much else: a statement only where it goes on like one, or ends."""
_STATEMENT = re.compile(
    rf"(?:drop\s+{_OF_A_KIND}{_THING}|drop\s+(?:{_OTHER_THING})|alter\s+(?:{_THING}|default\s+privileges)"
    r"|delete\s+(?:(?:low_priority|quick|ignore|only|top\s*\([^)]*\))\s+)*from\s"
    r"|delete\s+(?P<of>[\w.]+)\s+from\s+(?:(?P=of)\b|\S+\s+(?:as\s+)?(?P=of)\b)"
    r"|truncate\s+(?:table\b|only\b|\S+\s*(?:[;,]|cascade\b|restart\b|$))"
    r"|(?:insert|replace)\s+(?:or\s+\w+\s+|ignore\s+|low_priority\s+|delayed\s+)*into\s|(?:insert|replace)\s+[\w.]+\s*(?:\([^)]*\)\s*)?values\s*\("
    r"|update\s+(?:(?:or\s+\w+|only|low_priority|ignore|top\s*\([^)]*\))\s+)*(?:\S+|\"[^\"]*\"|`[^`]*`|\[[^\]]*\])\s+set\s"
    r"|update\s+\S+\s+(?:\w+\s+)?(?:inner\s+|left\s+|cross\s+)?join\s[^;]{1,400}?\sset\s"
    rf"|create\s+(?:or\s+(?:replace|alter)\s+)?{_OF_A_KIND}{_THING}|create\s+login\s+\S+\s+(?:with|from)\s"
    r"|grant\s+\S.*\bto\b|revoke\s+\S.*\b(?:from|to)\b|merge\s+into"
    r"|select\s+\S.*\bfrom\b|select\s+\w+\s*\(|with\s+\w+\s+as\s*\(|exec(?:ute)?\s+\w+|call\s+\w+\s*\("
    r"|copy\s+(?:\S+|\(.*\)|\S+\s*\([^)]*\))\s+(?:to|from)\s+(?:program|'|stdin|stdout)|attach\s+(?:database\s+)?'|do\s+(?:language\s+\w+\s+)?[$']"
    r"|lock\s+table\s|set\s+(?:local\s+|session\s+)?role\s+\S+\s*;?\s*$|vacuum(?:\s+(?:full|into)\b|\s*;)"
    r"|(?:begin|start\s+transaction|commit|rollback)\s*;\s*(?:drop|delete|truncate|insert|update|alter|create|grant)\s"
    r"|explain\s+(?:\([^)]*\)\s*|(?:analyze|verbose|extended)\s+)*(?:delete\s+from|update\s+\S+\s+set|insert\s+into|select\s+\S.*\bfrom\b)"
    r"|load\s+(?:data|extension)\b|pragma\s+\w+\s*[=(]|declare\s+@|waitfor\s+delay|rename\s+table\s|set\s+global\s"
    r"|refresh\s+materialized|install\s+(?:plugin|component)\s|reindex\s+(?:table|index|database|schema|system)\b"
    r"|delete\s+\w+\s+where\s+\w+\s*[=<>]|update\s+(?:\S+|[\"`\[][^=;]{1,80})\s+(?:as\s+)?\w+\s+set\s+\S+\s*=|shutdown\s*;?\s*$|shutdown\s+with\s"
    r"|if\s+(?:exists\b|not\b|object_id\b|[(@\d])[^;]{0,200}?[\s)](?:drop\s+table|delete\s+from|truncate\s+table)\s|(?:backup|restore)\s+database\s+\S+\s+(?:to|from)\s+\w+\s*="
    r"|prepare\s+\w+\s+from\s+['@]|prepare\s+\w+(?:\s*\([^)]*\))?\s+as\s+(?:select|insert|update|delete|values)\b|[\\.](?:!|shell\b|system\b|copy\s|import\s|read\s)"
    r"|merge\s+\w+\s+using\b|begin\s+(?:drop|delete|truncate|insert|alter)\s)",
    re.IGNORECASE | re.DOTALL,
)


def is_statement(text: str) -> bool:
    """Whether a database would take this text, or what follows a `;` in it, for a statement."""
    plain = _plain(text)
    if _STATEMENT.match(plain, 0, _LONGEST):
        return True
    others = (found.end() for found in islice(_NEXT.finditer(plain), _MOST))
    return any(_STATEMENT.match(plain, begin, begin + _LONGEST) for begin in others)


def may_select(text: str) -> bool:
    """Whether it may be a query that reads, or a sentence: only who parses it can tell."""
    return _SELECTING.match(_plain(text)) is not None


_SELECTING = re.compile(
    r"select\b[^;]{0,4000}?(?:[(@*'\"=,]|\b(?:into|union|from)\b)|select\s+\S+\s*;?\s*$|values\s*\(|table\s+\w+\s*;?\s*$"
    r"|with\s+(?:recursive\s+)?\S+[^;]{0,400}?\bas\b",
    re.IGNORECASE,
)


def _plain(text: str) -> str:
    """The text without what a database passes over."""
    return _BEFORE.sub("", _COMMENT.sub(" ", text).lstrip(), count=1)


def has_statement(action: Action) -> bool:
    """Whether the action carries a statement outside the parameters the sql engine reads."""
    texts = [(path, text) for path, text in strings_in(action.parameters) if path not in _BY_NAME]
    return any(is_statement(text) for _path, text in [*texts, ("", action.target or "")])


def refuse_stray(action: Action, subject: Subject) -> Answer | None:
    """The refusal of an action that says more than is judged."""
    if action.tool is not None and action.type != TOOL_CALL:
        return _refused("`tool` goes with type `tool_call` alone")
    used = _FIELDS.get(subject.judge, ("query", "target"))
    for field in ("query", "code", "target"):
        if getattr(action, field) and field not in used:
            return _refused(f"`{field}` has no meaning for `{subject.name}`: leave it out")
    strings = strings_in(action.parameters)
    if not strings.complete:
        return _refused("the parameters hold more than is read: send fewer of them", "parameters_readable")
    if subject.custom:
        return None
    if subject.judge == SHELL and any(text != path.rpartition(".")[2] for path, text in strings):
        return _refused("give the whole command in `query`, and no text beside it")
    if subject.judge == "sql" and has_statement(action):
        return _refused("give the one statement in `query`, and none beside it")
    return None


def _refused(message: str, check: str = "one_reading") -> Answer:
    return denied(ErrorCode.VERIFICATION_FAILED, message, check=check)
