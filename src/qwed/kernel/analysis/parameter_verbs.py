"""Verbs stated in parameters: `method: DELETE`, `action: remove`, `operation: deleteUser`."""

import re
from collections.abc import Iterator

from qwed.kernel.analysis.executable_text import Member, members, read_tool_name
from qwed.kernel.request import Action
from qwed.kernel.tool_verbs import effect_of, meaning_of, names_secret
from qwed.model import EffectKind

_METHOD = re.compile(r"(?:http_|request_|api_)?(?:methods?|verbs?)")
_OPERATION = re.compile(r"(?:\w+_)?sub_?command|(?:actions?|operations?|ops?)(?:_(?:name|type))?")
_ACTION = re.compile(r"actions?(?:_(?:name|type))?")
_OF_EVENTS_TEXT = "audit event events log logs history activity activities trail entries records changes notifications"
_OF_EVENTS = frozenset(_OF_EVENTS_TEXT.split())
_FLAG = re.compile(r"[a-z]+|(?:delete|destroy|drop|erase|purge|truncate|wipe)_\w+")
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
    if (
        isinstance(value, str)
        and _OBJECT.fullmatch(plain)
        and any(map(names_secret, re.split("[/,:.]", value[:_LONGEST])))
    ):
        yield _READS_SECRET
    # For a tool that reads a log, an action is a search term: the entries about something that was deleted.
    if not (_METHOD.fullmatch(plain) or _OPERATION.fullmatch(plain)) or (reads and _ACTION.fullmatch(plain)):
        return
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, str) and _ONE_WORD.fullmatch(item):
            yield item


def _verbs_of_flag(plain: str) -> Iterator[str]:
    if meaning_of(plain) == EffectKind.DELETE and _FLAG.fullmatch(plain):
        yield plain
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
