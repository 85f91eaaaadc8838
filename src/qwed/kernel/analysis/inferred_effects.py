"""Infers file and network effects of an unregistered tool's call from its verbs and values."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, product
from typing import NamedTuple

from qwed.guards import path as paths
from qwed.guards.file_effects import file_effects
from qwed.guards.url_reach import WEIGHT, Reach, reach_of
from qwed.kernel.analysis.content_scan import name_at
from qwed.kernel.analysis.embedded_values import strings_within
from qwed.kernel.analysis.executable_text import ARGUMENTS, ToolName, may_be_executed, query_words, read_tool_name
from qwed.kernel.analysis.parameter_kinds import ParameterName, classify_name
from qwed.kernel.analysis.parameter_verbs import effects_of, parameter_verbs
from qwed.kernel.analysis.query_mutations import mutations_in
from qwed.kernel.analysis.text_forms import has_code, has_options, is_serialized, is_substitution, reads_other_file
from qwed.kernel.analysis.unjudged_queries import is_unproven_query, names_language
from qwed.kernel.case import Case
from qwed.kernel.tool_verbs import meaning_of, words_of
from qwed.model import Effect, EffectKind, Verdict
from qwed.model.tool_name import base_tool_name
from qwed.model.unicode_normal import normalize

MAX_FILES = 1000
MAX_EFFECTS_PER_KIND = 100
"""Effects of one kind that are listed individually."""

_WRITING_TEXT = """
write save create edit append update put store install replace insert patch modify overwrite touch mkdir download
extract unzip apply change set generate add commit checkout reset clone restore init build make render convert record
push pull merge rebase stash revert cherry clean prepend compress zip chmod chown format mount sync
"""
WRITING = frozenset(_WRITING_TEXT.split())
_DELETING = frozenset({"delete"})
MOVING = frozenset({"move", "rename", "mv"})
COPYING = frozenset({"copy", "cp", "duplicate", "backup", "link", "symlink"})
_ABOUT_FILES = frozenset({"file", "files", "directory", "directories", "dir", "folder", "folders", "path", "fs"})

_E = EffectKind
_FileEffects = tuple[tuple[EffectKind, ...], tuple[EffectKind, ...]]
"""Effects on a source file, and on a destination file."""
_READ: _FileEffects = ((_E.READ,), (_E.READ,))
_FILE_EFFECTS: tuple[tuple[frozenset[str], _FileEffects], ...] = (
    (_DELETING, ((_E.DELETE,), (_E.DELETE,))),
    (MOVING, ((_E.DELETE,), (_E.WRITE,))),
    (COPYING, ((_E.READ,), (_E.WRITE,))),
    (WRITING, ((_E.WRITE,), (_E.WRITE,))),
)


class _NamedText(NamedTuple):
    name: ParameterName
    text: str
    complete: bool = True
    """False if the text contains values beyond the limits, which are not read."""


_PATH_AT_START = re.compile(
    r"\s*(?:[/~\\]|\.\.?(?:[/\\]|%(?:25)*(?:2f|5c))|[A-Za-z]:[\\/]|(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?file:|%(?:25)*(?:2f|2e|5c|7e)"
    r"|\$\{?[a-z_]\w*\}?[/\\]|%[a-z_]\w*%[/\\])|[^\s:?#]*[/\\]\.\.(?:[/\\]|\Z)",
    re.IGNORECASE,
)
_FILE_URL = re.compile(r"\s*(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?file:", re.IGNORECASE)
_FILE_LIKE = re.compile(r"[^\s]*[/\\~][^\s]*|[\w.-]+\.\w{1,8}|\.\.?")
_ONE_WORD = re.compile(r"\S+")
_DROPPED = re.compile(r"[\t\r\n]")
"""Characters that browsers ignore in an address."""
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?(?:https?|wss?|ftp):\S|[a-z][a-z0-9+.-]{0,30}:[/\\]{2}|//[^/\s]", re.IGNORECASE
)
_HOST_LIKE = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*://|//).*|localhost(?::\d+)?(?:/.*)?|[\w.-]+\.[A-Za-z]{2,}(?::\d+)?(?:/.*)?|[\[\]:.0-9a-fx]+",
    re.IGNORECASE,
)


def inferred_effects(case: Case) -> tuple[Effect, ...]:
    """Return the effects of verbs in the parameters, and on the files and addresses in the call."""
    name = case.resolved_action.name
    texts = list(_texts(case))
    verbs = parameter_verbs(name, case.action)
    tool = read_tool_name(name)
    changes = [kind for text in texts for kind in _changes_in(text, tool)]
    if case.resolved_action.executable_text is None and any(map(_is_argument, texts)):
        changes.append(EffectKind.UNRESOLVED)  # options of a program that is not known
    by_verb = tuple(Effect(kind, name) for kind in dict.fromkeys((*effects_of(verbs), *changes)))
    return (*by_verb, *_file_and_address_effects(texts, file_words(name, verbs)))


def _is_argument(named_text: _NamedText) -> bool:
    return ARGUMENTS.fullmatch(named_text.name.plain) is not None and _OPTION.match(named_text.text) is not None


_OPTION = re.compile(r"\s*--?[A-Za-z]")


def _changes_in(named_text: _NamedText, tool: ToolName) -> Iterator[EffectKind]:
    """Yield the effects of a text that is a query of a language without an engine, or code under any name."""
    name, text, complete = named_text
    if not complete and (tool.takes_queries or not (name.content or name.stored)):
        yield EffectKind.UNRESOLVED
    if name.content and not tool.takes_queries:
        return
    yield from mutations_in(text, is_query=name.query and not tool.searches_text)
    if classify_name(text).plain == name.plain:
        return  # the parameter's name itself
    if _does_more_than_name(name, text) or is_serialized(text) or reads_other_file(text):
        yield EffectKind.UNRESOLVED
    executable = may_be_executed(name, tool)
    is_query = name.query or name.command or executable
    is_code = (name.code or executable) and has_code(text)
    # In documents and on the web a query is what is looked for, unless the tool is named after its language.
    is_query = is_query and not (tool.searches_text and not names_language(query_words(name, tool)))
    if is_code or (is_query and is_unproven_query(text, query_words(name, tool))):
        yield EffectKind.UNRESOLVED


def _does_more_than_name(name: ParameterName, text: str) -> bool:
    """Return True if a value is replaced, executed or taken for an option by the program that gets it."""
    if is_substitution(text) and not name.query and not _SEARCHED.fullmatch(name.plain):
        return True
    if not (name.file or name.perhaps_file or _OPERAND.fullmatch(name.plain)):
        return False
    return has_options(text) or (len(text) < _LONGEST_NAME and has_code(text))


_OPERAND = re.compile(
    r"(?:\w+_)?(?:ref|refs|objects?|branch|revision|rev|commit|range|tag|sha|base|head|remote|repo|names?|ids?|host|container|pod"
    r"|image|package|namespace)"
)
"""Names of what a program gets as an operand."""
_LONGEST_NAME = 400
_SEARCHED = re.compile(
    r"(?:\w+_)?(?:search|terms?|keywords?|patterns?|regexp?|grep|q|filter|replacement|replace|quotes?|markdown)"
)


def file_words(name: str, verbs: Iterable[str] = ()) -> frozenset[str]:
    """Return the words that tell what a call does with a file; every word for writing or deleting adds that one."""
    names = (base_tool_name(name), *verbs)
    meanings = {meaning_of(text).lower() for text in names}
    words = frozenset(word for text in names for word in words_of(text))
    # `extract_text` reads, `extract_archive` writes.
    return words.difference(_PERHAPS_WRITING if meanings == {"read"} else ()).union(_FILE_VERBS & meanings)


_FILE_VERBS = frozenset({"write", "delete"})
_PERHAPS_WRITING = frozenset({"extract", "convert", "render", "record", "format"})


def _file_and_address_effects(texts: list[_NamedText], words: frozenset[str]) -> tuple[Effect, ...]:
    files = [text for text in texts if names_file(text, words)]
    joined_files = list(islice(_joined_paths(texts), MAX_FILES + 1))
    if max(len(files), len(joined_files)) > MAX_FILES:
        return (Effect(EffectKind.UNRESOLVED, f"more than {MAX_FILES} files"),)
    addresses = list(dict.fromkeys(_cut_target(text.text) for text in texts if _names_address(text)))
    if len(addresses) > MAX_EFFECTS_PER_KIND:
        # The omitted ones must not be more severe than the listed ones.
        addresses.sort(key=lambda address: -WEIGHT[reach_of(address)])
    file_effects_found = (*_effects_on(files, words), *_effects_on(joined_files, words))
    return (
        *_limited(file_effects_found),
        *(Effect(EffectKind.NETWORK, text) for text in addresses[:MAX_EFFECTS_PER_KIND]),
    )


_DIRECTORY = re.compile(r"(?:\w+_)?(?:dir|directory|folder|root|cwd|workdir)|base_path|base|parent(?:_path)?")
_NAME = re.compile(r"(?:\w+_)?(?:file|filename|file_name|path|name|filepath)")


def _joined_paths(texts: list[_NamedText]) -> Iterator[_NamedText]:
    """Yield the files formed by a directory and a name in separate parameters."""
    directories = [name.text for name in texts if _DIRECTORY.fullmatch(name.name.plain) and "://" not in name.text]
    names = [name for name in texts if _NAME.fullmatch(name.name.plain) and not _DIRECTORY.fullmatch(name.name.plain)]
    for directory, name in product(directories, names):
        if len(directory) + len(name.text) < paths.MAX_LENGTH and _PATH_AT_START.match(directory):
            yield _NamedText(name.name, f"{directory}/{name.text}")


def _cut_target(text: str) -> str:
    """Return the text as a target; a cut one stays longer than any resolvable path."""
    return text[: paths.MAX_LENGTH + 1]


def _texts(case: Case) -> Iterator[_NamedText]:
    executable_text = case.resolved_action.executable_text
    executed = () if executable_text is None else (executable_text.original, executable_text.normalized)
    if case.action.target:
        yield _NamedText(classify_name("target"), case.action.target)
    for path, text, complete in strings_within(case.action.parameters):
        name = classify_name(name_at(path))
        if text and text not in executed and not (executable_text is not None and name.command):
            yield _NamedText(name, text, complete)


def _effects_on(files: list[_NamedText], words: frozenset[str]) -> Iterator[Effect]:
    file_kinds = next((file_kinds for verbs, file_kinds in _FILE_EFFECTS if not verbs.isdisjoint(words)), _READ)
    destinations = [file for file in files if file.name.goal]
    # If source and destination cannot be told apart, each file is both.
    mixed = file_kinds[0] != file_kinds[1] and not destinations
    for file in files:
        resolved = paths.resolve(file.text, None)
        target = _cut_target(file.text) if resolved.location is paths.PathLocation.UNRESOLVABLE else resolved.path
        kinds = (*file_kinds[0], *file_kinds[1]) if mixed else file_kinds[file.name.goal]
        for kind in kinds:
            yield from file_effects(kind, target)
        if resolved.location is paths.PathLocation.UNRESOLVABLE and _is_unresolved_path(file.text):
            yield Effect(EffectKind.UNRESOLVED, target)


def _is_unresolved_path(text: str) -> bool:
    """Return True for an unresolvable path, and False for file content under the file's name."""
    return len(text) <= paths.MAX_LENGTH and ("\n" not in text.strip() or _PATH_AT_START.match(text) is not None)


def _limited(effects: Iterable[Effect]) -> Iterator[Effect]:
    """Yield the first effects of each kind, up to the maximum; the others are not more severe."""
    counts: dict[EffectKind, int] = {}
    for effect in dict.fromkeys(effects):
        counts[effect.kind] = counts.get(effect.kind, 0) + 1
        if counts[effect.kind] <= MAX_EFFECTS_PER_KIND:
            yield effect


def names_file(named_text: _NamedText, words: frozenset[str] = frozenset()) -> bool:
    """Return True if a text names a file, by its parameter's name or by its form."""
    name, text, _complete = named_text
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


_ADDRESS_MARK = re.compile(r"[.:/]|localhost|\A\d+\Z|\A0x", re.IGNORECASE)
"""What an address has and an id does not, such as that of a video under `url`."""
_METADATA_LIKE = re.compile(
    r"(?:\d[\da-fx]*\.[\da-fx.]+|\[[0-9a-f:.]+\]|[\w.-]*metadata\.[\w.-]+)(?:[:/]\S*)?", re.IGNORECASE
)


def _is_metadata_service(named_text: _NamedText) -> bool:
    """Return True if the text is the address of a cloud's metadata service, under any name."""
    if (
        named_text.name.query
        or named_text.name.content
        or not _METADATA_LIKE.fullmatch(named_text.text, 0, paths.MAX_LENGTH)
    ):
        return False
    return reach_of(named_text.text) is Reach.METADATA


def _names_address(named_text: _NamedText) -> bool:
    name, text = named_text.name, _DROPPED.sub("", named_text.text).strip()
    if text[:5].lower() in ("file:", "data:") or text == name.plain:
        return False
    whole = _ONE_WORD.fullmatch(text) is not None
    if _ADDRESS.match(text):
        return whole or name.url or name.host
    if _is_metadata_service(named_text):
        return True
    return whole and (
        (name.url and _ADDRESS_MARK.search(text) is not None) or (name.host and _HOST_LIKE.fullmatch(text) is not None)
    )


_EFFECT_OF_REACH = {
    Reach.METADATA: EffectKind.SECRET,
    # A service in the internal network may trust its clients and let them change its data.
    Reach.INTERNAL: EffectKind.WRITE,
    Reach.UNCLEAR: EffectKind.UNRESOLVED,
}


def with_address_effects(verdict: Verdict) -> tuple[Effect, ...]:
    """Return the effects, and those that result from the reach of the addresses among them."""
    reached = dict.fromkeys(effect.target for effect in verdict.effects if effect.kind is EffectKind.NETWORK)
    by_reach = (
        Effect(_EFFECT_OF_REACH[reach], target) for target in reached if (reach := reach_of(target)) in _EFFECT_OF_REACH
    )
    return (*verdict.effects, *_limited(by_reach))
