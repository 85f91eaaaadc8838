"""Where a path leads, read off its text alone: inside the allowed roots, outside, or nowhere we can name.

`resolve` does not touch the file system, so a symbolic link inside a root is followed by whoever opens it, not by us;
`resolve_on_disk` is for whoever opens it.
A path is judged in every form a later reader may turn it into (percent-decoded, full-width, backslashed); the worst
form counts.
"""

import os
import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from qwed.guards._path.forms import DRIVE, MAX_LENGTH, forms
from qwed.guards._path.sensitive import is_sensitive as _is_sensitive

__all__ = ["MAX_LENGTH", "PathFinding", "Place", "resolve", "resolve_on_disk"]


class Place(StrEnum):
    """Where a path leads."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNRESOLVABLE = "unresolvable"


@dataclass(frozen=True, slots=True)
class PathFinding:
    """Where the path leads, its normal form, and whether what lies there is known to hold secrets."""

    place: Place
    path: str
    sensitive: bool = False
    reason: str = ""


_PLAIN = re.compile(r"(?!.*\.\.\.)[A-Za-z0-9_/][A-Za-z0-9_./-]*[A-Za-z0-9_/-]|[A-Za-z0-9_/]")
_MAGIC_LINKS = frozenset({"root", "cwd", "fd", "exe", "map_files", "task"})
_MAGIC_DEVICES = frozenset({"fd", "stdin", "stdout", "stderr"})


def resolve(target: str, allowed_paths: tuple[str, ...] | None) -> PathFinding:
    """Where `target` leads; without `allowed_paths` every path we can name is inside."""
    if _PLAIN.fullmatch(target) and len(target) <= MAX_LENGTH:
        return _judge(target, allowed_paths)
    read_as, reason = forms(target)
    if reason:
        return PathFinding(Place.UNRESOLVABLE, read_as[-1], any(map(_is_sensitive, read_as)), reason)
    findings = [_judge(form, allowed_paths) for form in read_as]
    worst = max(findings, key=lambda each: _SEVERITY[each.place])
    return PathFinding(worst.place, findings[-1].path, any(each.sensitive for each in findings), worst.reason)


def resolve_on_disk(target: str, allowed_paths: tuple[str, ...] | None, *, start: str | None = None) -> PathFinding:
    """Where `target` leads from `start` (the current directory) once every symbolic link is followed.

    What `resolve` cannot name stays unresolvable. A link that is put in place between this answer and the opening of
    the file is not seen, and neither is a hard link: open with O_NOFOLLOW where that matters.
    """
    said = resolve(target, None)
    if said.place is Place.UNRESOLVABLE:
        return said
    try:
        real = os.path.realpath(os.path.join(start or os.getcwd(), os.path.expanduser(target)))
        roots = None if allowed_paths is None else tuple(map(_real_root, filter(None, allowed_paths)))
    except (OSError, ValueError):
        return PathFinding(Place.UNRESOLVABLE, said.path, sensitive=True, reason="the path cannot be followed")
    found = resolve(real, roots)
    return PathFinding(found.place, found.path, said.sensitive or found.sensitive, found.reason)


def _real_root(root: str) -> str:
    return os.path.realpath(os.path.expanduser(root))


_SEVERITY = {Place.INSIDE: 0, Place.OUTSIDE: 1, Place.UNRESOLVABLE: 2}


def _judge(form: str, allowed_paths: tuple[str, ...] | None) -> PathFinding:
    path = _normal(form)
    if path is None:
        return PathFinding(
            Place.UNRESOLVABLE, form, sensitive=True, reason="where it leads cannot be told from its text"
        )
    if allowed_paths is None:
        return PathFinding(Place.INSIDE, path, _is_sensitive(path))
    roots = _roots(allowed_paths)
    if DRIVE.match(path) and not any(map(DRIVE.match, roots)):
        return PathFinding(Place.UNRESOLVABLE, path, _is_sensitive(path), "a drive letter is no path of this machine")
    if path.startswith("~") and not any(root.startswith("~") for root in roots):
        return PathFinding(Place.UNRESOLVABLE, path, _is_sensitive(path), "whose home directory it is cannot be told")
    return _place(path, roots)


def _place(path: str, roots: tuple[str, ...]) -> PathFinding:
    # Nobody says which root a relative path starts from, so it must stay inside whichever it is.
    relative = not path.startswith(("/", "~")) and not DRIVE.match(path)
    joined = _joined(path, roots) if relative and roots else [path]
    sensitive = any(map(_is_sensitive, joined))
    fences = _fences(roots)
    for each in joined:
        if not _inside(each, fences):
            reason = f"`{each or path}` is outside the allowed paths"
            return PathFinding(Place.OUTSIDE, joined[0], sensitive, reason)
    return PathFinding(Place.INSIDE, joined[0], sensitive)


def _joined(path: str, roots: tuple[str, ...]) -> list[str]:
    """What a relative path may mean, from the first root first; what must be judged alike stands there once."""
    below = _CLIMB.sub("", path)
    climbs = path.count("..", 0, len(path) - len(below))
    return [_normal(f"{start}/{below}") or "" if start else "" for start in _starts(roots, climbs)]


_CLIMB = re.compile(r"\A(?:\.\.(?:/|\Z))+")


@lru_cache(maxsize=1024)
def _starts(roots: tuple[str, ...], climbs: int) -> tuple[str, ...]:
    """The directories so many levels above the roots, from which a path is to be judged."""
    starts = tuple(dict.fromkeys(_normal(root + "/.." * climbs) or "" for root in roots))
    if climbs:
        return starts
    # What does not climb stays inside any root, and below one plain name it is as sensitive as below another.
    alike = frozenset([root for root in starts if _is_plain(root)][1:]) - {starts[0]}
    return tuple(root for root in starts if root not in alike)


def _is_plain(root: str) -> bool:
    """Whether nothing about a path below `root` can be told from the root."""
    return _TIDY.fullmatch(root) is not None and not _TELLING.match(root) and not _is_sensitive(root)


_TELLING = re.compile(r"(?i)/(?:etc|proc|dev|run|var(?:/run|/lib|\Z))")


class _Fences(NamedTuple):
    climbs: int
    """The highest directory above the current one that is a root; -1 where neither it nor any above it is one."""
    prefixes: tuple[str, ...]
    """Sorted, and none the beginning of another, so only the last one before a path can be its beginning."""


@lru_cache(maxsize=1024)
def _fences(roots: tuple[str, ...]) -> _Fences:
    climbs = -1
    prefixes: list[str] = []
    for prefix in sorted(_closed(root) for root in roots):
        if _ABOVE.fullmatch(prefix):
            climbs = max(climbs, prefix.count(".."))
        elif not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    return _Fences(climbs, tuple(prefixes))


_ABOVE = re.compile(r"\./|(?:\.\./)+")
_ABSOLUTE = re.compile(r"[/~]|[A-Za-z]:/")


def _inside(path: str, fences: _Fences) -> bool:
    if not path:
        return False
    closed = _closed(path)
    if fences.climbs >= _levels_up(closed) and not _ABSOLUTE.match(path):
        return True
    before = bisect_right(fences.prefixes, closed)
    return before > 0 and closed.startswith(fences.prefixes[before - 1])


def _levels_up(path: str) -> int:
    climb = _CLIMB.match(path)
    return climb[0].count("..") if climb else 0


def _closed(path: str) -> str:
    """The path as a beginning of others; names below a drive letter mean the same in any case."""
    closed = path if path.endswith("/") else path + "/"
    return closed.casefold() if DRIVE.match(closed) else closed


@lru_cache(maxsize=1024)
def _roots(allowed_paths: tuple[str, ...]) -> tuple[str, ...]:
    """The normal forms of the allowed paths; one that is no plain path allows nothing."""
    return tuple(root for each in allowed_paths if (root := _root(each)))


def _root(allowed: str) -> str:
    read_as, reason = forms(allowed)
    return "" if reason else _normal(read_as[-1]) or ""


def _normal(form: str) -> str | None:
    """The path without `.`, `..` and doubled slashes; None where a kernel link or somebody's home decides."""
    if _TIDY.fullmatch(form):
        return form
    drive = form[:2] if DRIVE.match(form) else ""
    start = drive + "/" if form.startswith("/", len(drive)) else ""
    kept: list[str] = []
    for part in form[len(drive) :].split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            kept.append(part)
        elif kept and kept[-1] != "..":
            kept.pop()
        elif not start:
            kept.append(part)
        if _is_magic(start, kept) or (form.startswith("~") and not (kept and kept[0].startswith("~"))):
            return None
    return start + "/".join(kept) or "."


_TIDY = re.compile(r"(?!/proc|/dev)/?[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


def _is_magic(start: str, kept: list[str]) -> bool:
    """Whether the parts so far are a link that the kernel makes up: where it leads depends on the process."""
    if not kept or (start != "/" and kept[0] != ".."):
        return False
    top = kept[kept.count("..") :][:3] if kept[0] == ".." else kept[:3]
    if top[:1] == ["proc"]:
        return len(top) > 2 and top[2] in _MAGIC_LINKS
    return len(top) == 2 and top[0] == "dev" and top[1] in _MAGIC_DEVICES
