"""Verbs stated in parameters: `method: DELETE`, `action: remove`, `operation: deleteUser`."""

import re
from collections.abc import Iterator

from qwed.kernel.analysis.executable_text import Member, members, read_tool_name
from qwed.kernel.analysis.parameter_kinds import ParameterName
from qwed.kernel.request import Action
from qwed.kernel.tool_verbs import effect_of, meaning_of, names_secret
from qwed.model import EffectKind

_METHOD = re.compile(r"(?:http_|request_|api_)?(?:methods?|verbs?)")
_OPERATION = re.compile(r"(?:\w+_)?sub_?command|(?:actions?|operations?|ops?)(?:_(?:name|type))?")
_ACTION = re.compile(r"actions?(?:_(?:name|type))?")
_OF_EVENTS_TEXT = "audit event events log logs history activity activities trail entries records changes notifications"
_OF_EVENTS = frozenset(_OF_EVENTS_TEXT.split())
_DELETES = "delete|destroy|drop|erase|purge|truncate|wipe|remove|flush|clear"
_FLAG = re.compile(
    r"[a-z]+|(?!(?:can|show|on|has|is|include|allow|no|not|never|dry|with|skip|prevent|without|enable|disable)_)"
    rf"(?:[a-z]+_){{0,2}}(?:{_DELETES})(?:_\w+)?"
)
_GRAVE = frozenset({EffectKind.DELETE, EffectKind.ADMIN})
_TAKES = re.compile(r"(?:auto_)?(?:ack|acknowledge|consume|pop|dequeue|drain|auto_?commit|overwrite)(?:_\w+)?")
"""Flags that take what is read away."""
_DEED = re.compile(
    r"(?:\w+_)?(?:mode|intent|then|do|task|job|step|procedure|event|after|finally|disposition|behaviou?r|on_\w+|after_\w+)"
)
_REQUEST_LINE = re.compile(r"\s*(POST|PUT|PATCH|DELETE)\s+(?:/|https?:)\S*(?:\s+HTTP/|\s*\Z)")
_ONE_WORD = re.compile(r"[\w.:/-]{1,64}")
_OBJECT = re.compile(r"(?:\w+_)?(?:kind|type|resources?|objects?|entity|entities)(?:_(?:kind|type|name))?|gvk|what")
"""Parameters that name the thing a tool such as `kubectl_get` reads."""
_INCLUDED = re.compile(r"(?:with|include|show|reveal|return|expose|unmask|decrypt|dump|export|plain|raw)(?:_\w+)?")
_TRUE = (True, 1, "true", "True", "1", "yes", "on")


def parameter_verbs(name: str, action: Action) -> tuple[str, ...]:
    """Return the verbs in the parameters of the call."""
    tool = read_tool_name(name)
    reads = tool.reads and not tool.words.isdisjoint(_OF_EVENTS)
    return tuple(dict.fromkeys(verb for member in members(action) for verb in _verbs_in(member, reads=reads)))


def _verbs_in(member: Member, *, reads: bool) -> Iterator[str]:
    plain, value = member.name.plain, member.value
    if value in _TRUE:
        yield from _verbs_of_flag(plain)
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, str):
            yield from _verbs_of_text(member.name, item)
    # For a tool that reads a log, an action is a search term: the entries about something that was deleted.
    if not (_METHOD.fullmatch(plain) or _OPERATION.fullmatch(plain)) or (reads and _ACTION.fullmatch(plain)):
        return
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, str) and _ONE_WORD.fullmatch(item):
            yield item


def _verbs_of_text(name: ParameterName, value: str) -> Iterator[str]:
    if _DEED.fullmatch(name.plain) and _ONE_WORD.fullmatch(value) and meaning_of(value) == EffectKind.DELETE:
        yield value
    request = _REQUEST_LINE.match(value)
    if request is not None and not (name.content or name.stored or name.query):
        yield request[1]
    if _names_secret(name.plain, value[:_LONGEST]):
        yield _READS_SECRET


def _names_secret(plain: str, value: str) -> bool:
    """Return True if the value names a secret that is read: a kind of thing, a field or an environment variable."""
    if _OBJECT.fullmatch(plain) and any(map(names_secret, re.split("[/,:.]", value))):
        return True
    is_field = _FIELD.fullmatch(plain) or (_KEY.fullmatch(plain) and _VARIABLE.fullmatch(value))
    return bool(is_field) and any(
        _ONE_WORD.fullmatch(part) and meaning_of(f"get_{part}") == EffectKind.SECRET
        for part in re.split(r"[,\s]+", value)
    )


_FIELD = re.compile(r"(?:\w+_)?(?:fields?|columns?|attributes?|properties|projection|select)")
_KEY = re.compile(
    r"(?:\w+_)?(?:key|keys|name|names|setting|settings|variables?|vars?|env|parameter|property|config|id|path)"
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
"""Name of an environment variable."""


def _verbs_of_flag(plain: str) -> Iterator[str]:
    if meaning_of(plain) in _GRAVE and _FLAG.fullmatch(plain):
        yield plain
    if _TAKES.fullmatch(plain):
        yield "consume"
    if _INCLUDED.fullmatch(plain) and EffectKind.SECRET in map(meaning_of, (f"get_{plain}", plain.rpartition("_")[2])):
        yield _READS_SECRET


_READS_SECRET = "get_secret"  # noqa: S105 - the name of a tool
_LONGEST = 64


def effects_of(verbs: tuple[str, ...]) -> Iterator[EffectKind]:
    """Yield the effects of these verbs, except reading."""
    for verb in verbs:
        effect = effect_of(meaning_of(verb))
        if effect is not None and effect is not EffectKind.READ:
            yield effect
