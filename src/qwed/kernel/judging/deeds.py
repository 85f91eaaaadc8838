"""What a call is to do where a parameter says so: `method: DELETE`, `action: remove`, `operation: deleteUser`."""

import re
from collections.abc import Iterator

from qwed.kernel.judging.told import Member, members, read_tool_name
from qwed.kernel.request import Action
from qwed.kernel.tools import DELETING, effect_in_name, words_of
from qwed.words import EffectKind

_METHOD = re.compile(r"(?:http_|request_|api_)?(?:methods?|verbs?)")
_DEED = re.compile(r"(?:\w+_)?sub_?command|(?:actions?|operations?|ops?)(?:_(?:name|type))?")
_ONE_WORD = re.compile(r"[\w.:/-]{1,64}")


def deeds_told(name: str, action: Action) -> tuple[str, ...]:
    """The verbs that parameters give the tool, each as a name of its own."""
    reads = read_tool_name(name).reads
    return tuple(dict.fromkeys(deed for member in members(action) for deed in _deeds_in(member, reads=reads)))


def _deeds_in(member: Member, *, reads: bool) -> Iterator[str]:
    plain, value = member.name.plain, member.value
    if value is True and plain in DELETING:
        yield plain
    # Of a tool that reads, an action is what is looked for: the events of a log in which something was deleted.
    if not (_METHOD.fullmatch(plain) or (_DEED.fullmatch(plain) and not reads)):
        return
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, str) and _ONE_WORD.fullmatch(each):
            yield each


def effects_of(deeds: tuple[str, ...]) -> Iterator[EffectKind]:
    """What these verbs do, beyond reading."""
    for deed in deeds:
        effect = effect_in_name(deed)
        if effect not in (None, EffectKind.READ):
            yield effect


def words_in(deeds: tuple[str, ...]) -> frozenset[str]:
    """The words of these verbs, as of a tool's name."""
    return frozenset(word for deed in deeds for word in words_of(deed))
