"""What a custom tool's call would touch, told by its verb and by the values that name files and addresses."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import NamedTuple

from qwed.guards import path as paths
from qwed.guards.address import WEIGHT, Reach, reach_of
from qwed.guards.files import file_effects
from qwed.guards.text import strings_in
from qwed.kernel.case import Case
from qwed.kernel.judging.content import name_at
from qwed.kernel.judging.deeds import deeds_told, effects_of, words_in
from qwed.kernel.judging.mutating import changes_told
from qwed.kernel.judging.naming import Name, read_name
from qwed.kernel.tools import DELETING, words_of
from qwed.words import Effect, EffectKind, Verdict
from qwed.words.normal import normalize
from qwed.words.tool_name import bare

MOST_FILES = 1000
MOST_TOLD = 100
"""Effects of a kind that are told one by one."""

_WRITING_TEXT = """
write save create edit append update put store install replace insert patch modify overwrite touch mkdir download
extract unzip apply change set generate add commit checkout reset clone restore init build make render convert record
push pull merge rebase stash revert cherry clean prepend compress zip chmod chown format mount sync
"""
WRITING = frozenset(_WRITING_TEXT.split())
MOVING = frozenset({"move", "rename", "mv"})
COPYING = frozenset({"copy", "cp", "duplicate", "backup", "link", "symlink"})
_ABOUT_FILES = frozenset({"file", "files", "directory", "directories", "dir", "folder", "folders", "path", "fs"})

_E = EffectKind
_Deeds = tuple[tuple[EffectKind, ...], tuple[EffectKind, ...]]
"""What is done to a file, and what to one that stands where something goes to."""
_READ: _Deeds = ((_E.READ,), (_E.READ,))
_DEEDS: tuple[tuple[frozenset[str], _Deeds], ...] = (
    (DELETING, ((_E.DELETE,), (_E.DELETE,))),
    (MOVING, ((_E.DELETE,), (_E.WRITE,))),
    (COPYING, ((_E.READ,), (_E.WRITE,))),
    (WRITING, ((_E.WRITE,), (_E.WRITE,))),
)


class _Text(NamedTuple):
    name: Name
    text: str


_PATH_AT_START = re.compile(
    r"\s*(?:[/~\\]|\.\.?[/\\]|[A-Za-z]:[\\/]|(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?file:|%(?:25)*(?:2f|2e|5c|7e)"
    r"|\$\{?[a-z_]\w*\}?[/\\]|%[a-z_]\w*%[/\\])|[^\s:?#]*[/\\]\.\.(?:[/\\]|\Z)",
    re.IGNORECASE,
)
_FILE_URL = re.compile(r"\s*(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?file:", re.IGNORECASE)
_FILE_LIKE = re.compile(r"[^\s]*[/\\~][^\s]*|[\w.-]+\.\w{1,8}|\.\.?")
_ONE_WORD = re.compile(r"\S+")
_DROPPED = re.compile(r"[\t\r\n]")
"""What browsers leave out of an address."""
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?(?:https?|wss?|ftp):\S|[a-z][a-z0-9+.-]{0,30}:[/\\]{2}|//[^/\s]", re.IGNORECASE
)
_HOST_LIKE = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*://|//).*|localhost(?::\d+)?(?:/.*)?|[\w.-]+\.[A-Za-z]{2,}(?::\d+)?(?:/.*)?|[\[\]:.0-9a-fx]+",
    re.IGNORECASE,
)


def touched(case: Case) -> tuple[Effect, ...]:
    """The effects that parameters tell of, and those on the files and addresses that the call names."""
    name = case.subject.name
    texts = list(_texts(case))
    deeds = deeds_told(name, case.action)
    changes = (kind for each in texts if not each.name.content for kind in changes_told(each.text))
    told = tuple(Effect(kind, name) for kind in dict.fromkeys((*effects_of(deeds), *changes)))
    return (*told, *_on_things(texts, words_in(deeds).union(words_of(bare(name)))))


def _on_things(texts: list[_Text], words: frozenset[str]) -> tuple[Effect, ...]:
    files = [each for each in texts if names_file(each, words)]
    joined = list(islice(_joined(texts), MOST_FILES + 1))
    if max(len(files), len(joined)) > MOST_FILES:
        return (Effect(EffectKind.UNRESOLVED, f"more than {MOST_FILES} files"),)
    addresses = list(dict.fromkeys(_short(each.text) for each in texts if _names_address(each)))
    if len(addresses) > MOST_TOLD:
        # Those that are left out must be no graver than those that are told.
        addresses.sort(key=lambda address: -WEIGHT[reach_of(address)])
    done = (*_done_to(files, words), *_done_to(joined, words))
    return (*_told(done), *(Effect(EffectKind.NETWORK, each) for each in addresses[:MOST_TOLD]))


_DIRECTORY = re.compile(r"(?:\w+_)?(?:dir|directory|folder|root|cwd|workdir)|base_path|base|parent(?:_path)?")
_NAME = re.compile(r"(?:\w+_)?(?:file|filename|file_name|path|name|filepath)")


def _joined(texts: list[_Text]) -> Iterator[_Text]:
    """The files that a directory and a name given apart come to."""
    directories = [each.text for each in texts if _DIRECTORY.fullmatch(each.name.plain) and "://" not in each.text]
    names = [each for each in texts if _NAME.fullmatch(each.name.plain) and not _DIRECTORY.fullmatch(each.name.plain)]
    for directory, each in product(directories, names):
        if len(directory) + len(each.text) < paths.MAX_LENGTH and _PATH_AT_START.match(directory):
            yield _Text(each.name, f"{directory}/{each.text}")


def _short(text: str) -> str:
    """The text as a target; one that is cut stays longer than anybody resolves."""
    return text[: paths.MAX_LENGTH + 1]


def _texts(case: Case) -> Iterator[_Text]:
    told = case.subject.told
    run = () if told is None else (told.said, told.text)
    if case.action.target:
        yield _Text(read_name("target"), case.action.target)
    for path, text in strings_in(case.action.parameters):
        name = read_name(name_at(path))
        if text and text not in run and not (told is not None and name.command):
            yield _Text(name, text)


def _done_to(files: list[_Text], words: frozenset[str]) -> Iterator[Effect]:
    deeds = next((deeds for verbs, deeds in _DEEDS if not verbs.isdisjoint(words)), _READ)
    goals = [file for file in files if file.name.goal]
    # Where nobody can tell what is the source and what the goal, each file is both.
    mixed = deeds[0] != deeds[1] and not goals
    for file in files:
        found = paths.resolve(file.text, None)
        where = _short(file.text) if found.place is paths.Place.UNRESOLVABLE else found.path
        kinds = (*deeds[0], *deeds[1]) if mixed else deeds[file.name.goal]
        for kind in kinds:
            yield from file_effects(kind, where)
        if found.place is paths.Place.UNRESOLVABLE and _is_path(file.text):
            yield Effect(EffectKind.UNRESOLVED, where)


def _is_path(text: str) -> bool:
    """Whether it is a path that nobody can resolve, and not what a file holds, given under the file's name."""
    return len(text) <= paths.MAX_LENGTH and ("\n" not in text.strip() or _PATH_AT_START.match(text) is not None)


def _told(effects: Iterable[Effect]) -> Iterator[Effect]:
    """The effects, of each kind the first so many: the others are no graver."""
    counts: dict[EffectKind, int] = {}
    for effect in dict.fromkeys(effects):
        counts[effect.kind] = counts.get(effect.kind, 0) + 1
        if counts[effect.kind] <= MOST_TOLD:
            yield effect


def names_file(each: _Text, words: frozenset[str] = frozenset()) -> bool:
    """Whether a text names a file: by its own name, or by looking like nothing else."""
    name, text = each
    if len(text) > paths.MAX_LENGTH and not name.file:
        return False
    text = text if text.isascii() else normalize("NFKC", text)
    if _FILE_URL.match(text):
        return True
    if "://" in text or text == name.plain:
        return False
    if name.file:
        return True
    if name.content:
        return _PATH_AT_START.match(text) is not None and _ONE_WORD.fullmatch(text) is not None
    if name.perhaps_file and (_ABOUT_FILES & words or _FILE_LIKE.fullmatch(text)):
        return True
    return _PATH_AT_START.match(text) is not None and not text.startswith("//")


_METADATA_LIKE = re.compile(
    r"(?:\d[\da-fx]*\.[\da-fx.]+|\[[0-9a-f:.]+\]|[\w.-]*metadata\.[\w.-]+)(?:[:/]\S*)?", re.IGNORECASE
)


def _hands_out_keys(each: _Text) -> bool:
    """Whether it is the address of a cloud's metadata service and no more, under whatever name."""
    if each.name.query or each.name.content or not _METADATA_LIKE.fullmatch(each.text, 0, paths.MAX_LENGTH):
        return False
    return reach_of(each.text) is Reach.METADATA


def _names_address(each: _Text) -> bool:
    name, text = each.name, _DROPPED.sub("", each.text).strip()
    if text[:5].lower() in ("file:", "data:") or text == name.plain:
        return False
    whole = _ONE_WORD.fullmatch(text) is not None
    if _ADDRESS.match(text):
        return whole or name.url or name.host
    if _hands_out_keys(each):
        return True
    return whole and (name.url or (name.host and _HOST_LIKE.fullmatch(text) is not None))


_GRAVE = {
    Reach.METADATA: EffectKind.SECRET,
    # Whoever reaches a service of the house is taken for one of it, and may change what it keeps.
    Reach.INTERNAL: EffectKind.WRITE,
    Reach.UNCLEAR: EffectKind.UNRESOLVED,
}


def with_reach(verdict: Verdict) -> tuple[Effect, ...]:
    """The effects, and what the addresses among them make of the action."""
    reached = dict.fromkeys(effect.target for effect in verdict.effects if effect.kind is EffectKind.NETWORK)
    grave = (Effect(_GRAVE[reach], target) for target in reached if (reach := reach_of(target)) in _GRAVE)
    return (*verdict.effects, *_told(grave))
