"""Refuses text in fields that no analyzer reads: the executor of an action may read every field."""

import re
from itertools import islice

from qwed.guards.text_scan import strings_in
from qwed.kernel.answer import Answer, denied
from qwed.kernel.request import Action
from qwed.kernel.tools import PATH, SHELL, TOOL, TOOL_CALL, ResolvedAction
from qwed.model import ErrorCode

_ANALYZED_FIELDS = {
    "sql": ("query", "target"),
    "code": ("code", "query", "target"),
    PATH: ("target", "query"),
    TOOL: ("target", "query"),
    SHELL: ("query",),
}
"""Fields that each analyzer uses; the other engines use the query and the target."""

_SQL_ENGINE_PARAMETERS = frozenset(
    {"query", "sql", "statement", "sql_query", "schema_ddl", "dialect", "allowed_tables"}
)
"""Parameters that the sql engine reads."""

_COMMENT = re.compile(r"/\*(?!M?!)[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)|/\*M?!\d*|\*/|--[^\n]*+(?:\n|$)|\#[^\n]*+\n")
"""Text that a database ignores; for an executable comment of MySQL or MariaDB, only its delimiters."""
_LEADING_NOISE = re.compile(r"[\s;(\ufeff\u200b-\u200d\u2060]*+")
_NEXT_STATEMENT = re.compile(
    r";\s*(?=(?:drop|delete|truncate|insert|replace|update|alter|create|grant|revoke|merge|exec|call|copy|load|if|set"
    r"|select|with|shutdown|attach|vacuum|do|begin|rename)\b)",
    re.IGNORECASE,
)
_MAX_STATEMENTS = 100
"""Number of further statements that are checked."""
_MAX_STATEMENT_LENGTH = 4096
"""Characters of a statement that are checked."""
_SCHEMA_OBJECT = (
    r"(?:table|database|schema|view|index|user|role|column|function|procedure|trigger|sequence|materialized\s+view"
    r"|extension|tablespace|synonym|publication|subscription|system)\b"
)
_OBJECT_MODIFIERS = r"(?:(?:global|local|unique|virtual|external|foreign|unlogged|temp\w*)\s+)*"
_AMBIGUOUS_OBJECT = (
    r"owned\s+by\s|(?:keyspace|warehouse|login|event|type|domain|rule|policy|server|catalog|package|stage"
    r"|aggregate|operator|language|assembly|certificate|credential|routine|statistics)"
    r"\s+(?:if\s+exists\s|\S+(?:\s+on\s+\S+)?\s*(?:cascade|restrict|;|$))"
)
"""Words with other meanings: a statement only if it continues or ends like one."""
_STATEMENT = re.compile(
    rf"(?:drop\s+{_OBJECT_MODIFIERS}{_SCHEMA_OBJECT}|drop\s+(?:{_AMBIGUOUS_OBJECT})|alter\s+(?:{_SCHEMA_OBJECT}|default\s+privileges)"
    r"|delete\s+(?:(?:low_priority|quick|ignore|only|top\s*\([^)]*\))\s+)*from\s"
    r"|delete\s+(?P<of>[\w.]+)\s+from\s+(?:(?P=of)\b|\S+\s+(?:as\s+)?(?P=of)\b)"
    r"|truncate\s+(?:table\b|only\b|\S+\s*(?:[;,]|cascade\b|restart\b|$))"
    r"|(?:insert|replace)\s+(?:or\s+\w+\s+|ignore\s+|low_priority\s+|delayed\s+)*into\s|(?:insert|replace)\s+[\w.]+\s*(?:\([^)]*\)\s*)?values\s*\("
    r"|update\s+(?:(?:or\s+\w+|only|low_priority|ignore|top\s*\([^)]*\))\s+)*(?:\S+|\"[^\"]*\"|`[^`]*`|\[[^\]]*\])\s+set\s"
    r"|update\s+\S+\s+(?:\w+\s+)?(?:inner\s+|left\s+|cross\s+)?join\s[^;]{1,400}?\sset\s"
    rf"|create\s+(?:or\s+(?:replace|alter)\s+)?{_OBJECT_MODIFIERS}{_SCHEMA_OBJECT}|create\s+login\s+\S+\s+(?:with|from)\s"
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
    r"|export\s+data\b|(?:force\s+)?install\s+\w+\s*(?:from\b|;|$)|unload\s*\(|put\s+'?file:|kill\s+(?:query\s+|connection\s+)?\d+\s*;?$"
    r"|detach\s+(?:database\s+)?\w+\s*;?$|optimize\s+table\s|reassign\s+owned\b|discard\s+all\b|purge\s+(?:binary|tables?)\b"
    r"|undrop\s+\w+\s|comment\s+on\s+(?:table|column)\s|import\s+foreign\s|create\s+or\s+replace\s"
    r"|merge\s+\w+\s+using\b|begin\s+(?:drop|delete|truncate|insert|alter)\s)",
    re.IGNORECASE | re.DOTALL,
)


def is_statement(text: str) -> bool:
    """Return True if a database would execute this text, or a part after a `;`, as a statement."""
    plain = _without_comments(text)
    if _STATEMENT.match(plain, 0, _MAX_STATEMENT_LENGTH):
        return True
    starts = (match.end() for match in islice(_NEXT_STATEMENT.finditer(plain), _MAX_STATEMENTS))
    return any(_STATEMENT.match(plain, start, start + _MAX_STATEMENT_LENGTH) for start in starts)


def may_select(text: str) -> bool:
    """Return True if the text may be a reading query or a sentence: only a parser can decide."""
    return _SELECT.match(_without_comments(text)) is not None


_SELECT = re.compile(
    r"select\b[^;]{0,4000}?(?:[(@*'\"=,]|\b(?:into|union|from)\b)|select\s+\S+\s*;?\s*$|values\s*\(|table\s+\w+\s*;?\s*$"
    r"|with\s+(?:recursive\s+)?\S+[^;]{0,400}?\bas\b",
    re.IGNORECASE,
)


def _without_comments(text: str) -> str:
    """Return the text without comments and leading noise."""
    return _LEADING_NOISE.sub("", _COMMENT.sub(" ", text).lstrip(), count=1)


def has_statement(action: Action) -> bool:
    """Return True if the action has a statement outside the parameters that the sql engine reads."""
    texts = [(path, text) for path, text in strings_in(action.parameters) if path not in _SQL_ENGINE_PARAMETERS]
    return any(is_statement(text) for _path, text in [*texts, ("", action.target or "")])


def refuse_unanalyzed_text(action: Action, resolved_action: ResolvedAction) -> Answer | None:
    """Return the refusal of an action with text that is not analyzed, or None."""
    if action.tool is not None and action.type != TOOL_CALL:
        return _refused("`tool` is allowed only with type `tool_call`")
    used = _ANALYZED_FIELDS.get(resolved_action.analyzer, ("query", "target"))
    for field in ("query", "code", "target"):
        if getattr(action, field) and field not in used:
            return _refused(f"`{field}` is not used by `{resolved_action.name}`: leave it out")
    strings = strings_in(action.parameters)
    if not strings.complete:
        return _refused("the parameters are too large to be checked: send fewer", "parameters_readable")
    if resolved_action.custom:
        return None
    if resolved_action.analyzer == SHELL and any(text != path.rpartition(".")[2] for path, text in strings):
        return _refused("send the whole command in `query`, without other texts")
    if resolved_action.analyzer == "sql" and has_statement(action):
        return _refused("send one statement in `query`, without other statements")
    return None


def _refused(message: str, check: str = "one_reading") -> Answer:
    return denied(ErrorCode.VERIFICATION_FAILED, message, check=check)
