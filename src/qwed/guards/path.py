"""Path guard: decide from the text of a path if it is inside the allowed roots, outside, or unresolvable.

`resolve` does not touch the file system, so it does not follow symbolic links; code that opens the file uses
`resolve_on_disk`, and a guard on the machine of the files `resolve_through_links`. A path is checked in every form that
a later reader may decode it to (percent-decoded, full-width, backslashes); the worst form counts.
"""

import os
import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from glob import has_magic, iglob
from itertools import islice
from typing import NamedTuple

from qwed.guards._path.normal_forms import DRIVE, MAX_LENGTH, decoded_forms
from qwed.guards._path.sensitive import is_sensitive as _is_sensitive

__all__ = ["MAX_LENGTH", "PathFinding", "PathLocation", "resolve", "resolve_on_disk", "resolve_through_links"]


class PathLocation(StrEnum):
    """Location of a path relative to the allowed roots."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNRESOLVABLE = "unresolvable"


@dataclass(frozen=True, slots=True)
class PathFinding:
    """Location of a path, its normal form, and if it is known to hold secrets."""

    location: PathLocation
    path: str
    sensitive: bool = False
    reason: str = ""


_PLAIN = re.compile(r"(?!.*\.\.\.)[A-Za-z0-9_/][A-Za-z0-9_./-]*[A-Za-z0-9_/-]|[A-Za-z0-9_/]")
_MAGIC_LINKS = frozenset({"root", "cwd", "fd", "exe", "map_files", "task"})
_MAGIC_DEVICES = frozenset({"fd", "stdin", "stdout", "stderr"})


def resolve(target: str, allowed_paths: tuple[str, ...] | None) -> PathFinding:
    """Return the location of `target`; without `allowed_paths` every resolvable path is inside."""
    if _PLAIN.fullmatch(target) and len(target) <= MAX_LENGTH:
        return _classify(target, allowed_paths)
    forms, reason = decoded_forms(target)
    if reason:
        return PathFinding(PathLocation.UNRESOLVABLE, forms[-1], any(map(_is_sensitive, forms)), reason)
    findings = [_classify(form, allowed_paths) for form in forms]
    worst = max(findings, key=lambda finding: _SEVERITY[finding.location])
    return PathFinding(worst.location, findings[-1].path, any(finding.sensitive for finding in findings), worst.reason)


def resolve_on_disk(target: str, allowed_paths: tuple[str, ...] | None, *, start: str | None = None) -> PathFinding:
    """Return the location of `target` relative to `start` (default: the current directory) with every symbolic link
    followed.

    Paths that `resolve` cannot resolve stay unresolvable. A link created between this call and the opening of the file
    is not seen, and neither is a hard link: open with O_NOFOLLOW where that matters.
    """
    by_text = resolve(target, None)
    if by_text.location is PathLocation.UNRESOLVABLE:
        return by_text
    try:
        real = os.path.realpath(os.path.join(start or os.getcwd(), os.path.expanduser(target)))
        roots = None if allowed_paths is None else tuple(map(_real_root, filter(None, allowed_paths)))
    except (OSError, ValueError):
        return PathFinding(
            PathLocation.UNRESOLVABLE, by_text.path, sensitive=True, reason="the path cannot be followed"
        )
    on_disk = resolve(real, roots)
    return PathFinding(on_disk.location, on_disk.path, by_text.sensitive or on_disk.sensitive, on_disk.reason)


def resolve_through_links(target: str, allowed_paths: tuple[str, ...] | None) -> PathFinding:
    """Return the worse of the location by text and the location on disk with every symbolic link followed.

    A relative path is taken from each allowed path, and from the current directory if that is inside one. A pattern is
    taken for every file that it matches now.
    """
    by_text = resolve(target, allowed_paths)
    if by_text.location is not PathLocation.INSIDE:
        return by_text
    roots = () if allowed_paths is None else tuple(map(_real_root, filter(None, allowed_paths)))
    here = os.getcwd()
    starts = [*roots, here] if not roots or _is_inside(here, _compile_roots(roots)) else roots
    findings = [by_text]
    for start in [here] if os.path.isabs(os.path.expanduser(target)) else starts:
        matches = _matching_paths(target, start)
        if matches is None:
            reason = f"it matches more than {_MAX_MATCHES} files, which are not all followed"
            return PathFinding(PathLocation.UNRESOLVABLE, by_text.path, by_text.sensitive, reason)
        findings += [resolve_on_disk(match, allowed_paths, start=start) for match in matches]
    worst = max(findings, key=lambda finding: _SEVERITY[finding.location])
    return PathFinding(worst.location, by_text.path, any(finding.sensitive for finding in findings), worst.reason)


def _matching_paths(target: str, start: str) -> list[str] | None:
    """Return the path itself, and the files that it matches as a pattern; None if they are too many."""
    if not has_magic(target):
        return [target]
    matches = list(islice(iglob(os.path.expanduser(target), root_dir=start, include_hidden=True), _MAX_MATCHES + 1))
    return None if len(matches) > _MAX_MATCHES else [target, *matches]


_MAX_MATCHES = 1_000


def _real_root(root: str) -> str:
    return os.path.realpath(os.path.expanduser(root))


_SEVERITY = {PathLocation.INSIDE: 0, PathLocation.OUTSIDE: 1, PathLocation.UNRESOLVABLE: 2}


def _classify(form: str, allowed_paths: tuple[str, ...] | None) -> PathFinding:
    path = _normalize(form)
    if path is None:
        return PathFinding(
            PathLocation.UNRESOLVABLE,
            form,
            sensitive=True,
            reason="the target cannot be determined from the text of the path",
        )
    if allowed_paths is None:
        return PathFinding(PathLocation.INSIDE, path, _is_sensitive(path))
    roots = _normalize_roots(allowed_paths)
    if DRIVE.match(path) and not any(map(DRIVE.match, roots)):
        return PathFinding(
            PathLocation.UNRESOLVABLE, path, _is_sensitive(path), "a drive letter is not a path of this machine"
        )
    if path.startswith("~") and not any(root.startswith("~") for root in roots):
        return PathFinding(
            PathLocation.UNRESOLVABLE, path, _is_sensitive(path), "cannot determine whose home directory it is"
        )
    return _locate(path, roots)


def _locate(path: str, roots: tuple[str, ...]) -> PathFinding:
    # It is not known which root a relative path starts from, so it must stay inside for each of them.
    relative = not path.startswith(("/", "~")) and not DRIVE.match(path)
    candidates = _candidate_paths(path, roots) if relative and roots else [path]
    sensitive = any(map(_is_sensitive, candidates))
    compiled = _compile_roots(roots)
    for candidate in candidates:
        if not _is_inside(candidate, compiled):
            reason = f"`{candidate or path}` is outside the allowed paths"
            return PathFinding(PathLocation.OUTSIDE, candidates[0], sensitive, reason)
    return PathFinding(PathLocation.INSIDE, candidates[0], sensitive)


def _candidate_paths(path: str, roots: tuple[str, ...]) -> list[str]:
    """Return the paths that a relative path may mean, the one below the first root first, without duplicates."""
    below = _CLIMB.sub("", path)
    climbs = path.count("..", 0, len(path) - len(below))
    return [_normalize(f"{start}/{below}") or "" if start else "" for start in _start_directories(roots, climbs)]


_CLIMB = re.compile(r"\A(?:\.\.(?:/|\Z))+")


@lru_cache(maxsize=1024)
def _start_directories(roots: tuple[str, ...], climbs: int) -> tuple[str, ...]:
    """Return the directories `climbs` levels above the roots, without those that are equivalent to an earlier one."""
    starts = tuple(dict.fromkeys(_normalize(root + "/.." * climbs) or "" for root in roots))
    if climbs:
        return starts
    # A path that does not climb stays inside any root, and it is equally sensitive below any plain root.
    alike = frozenset([root for root in starts if _is_plain(root)][1:]) - {starts[0]}
    return tuple(root for root in starts if root not in alike)


def _is_plain(root: str) -> bool:
    """Return True if the root itself does not affect how a path below it is classified."""
    return _TIDY.fullmatch(root) is not None and not _SPECIAL_ROOTS.match(root) and not _is_sensitive(root)


_SPECIAL_ROOTS = re.compile(r"(?i)/(?:etc|proc|dev|run|var(?:/run|/lib|\Z))")


class _AllowedRoots(NamedTuple):
    climbs: int
    """Levels above the current directory of the highest relative root; -1 without a relative root."""
    prefixes: tuple[str, ...]
    """Sorted, and none is a prefix of another, so only the last one before a path can be its prefix."""


@lru_cache(maxsize=1024)
def _compile_roots(roots: tuple[str, ...]) -> _AllowedRoots:
    climbs = -1
    prefixes: list[str] = []
    for prefix in sorted(_with_trailing_slash(root) for root in roots):
        if _ABOVE.fullmatch(prefix):
            climbs = max(climbs, prefix.count(".."))
        elif not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    return _AllowedRoots(climbs, tuple(prefixes))


_ABOVE = re.compile(r"\./|(?:\.\./)+")
_ABSOLUTE = re.compile(r"[/~]|[A-Za-z]:/")


def _is_inside(path: str, compiled: _AllowedRoots) -> bool:
    if not path:
        return False
    prefix = _with_trailing_slash(path)
    if compiled.climbs >= _levels_up(prefix) and not _ABSOLUTE.match(path):
        return True
    before = bisect_right(compiled.prefixes, prefix)
    return before > 0 and prefix.startswith(compiled.prefixes[before - 1])


def _levels_up(path: str) -> int:
    climb = _CLIMB.match(path)
    return climb[0].count("..") if climb else 0


def _with_trailing_slash(path: str) -> str:
    """Return the path as a prefix of others; paths with a drive letter are casefolded."""
    prefix = path if path.endswith("/") else path + "/"
    return prefix.casefold() if DRIVE.match(prefix) else prefix


@lru_cache(maxsize=1024)
def _normalize_roots(allowed_paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the normal forms of the allowed paths, without those that cannot be resolved."""
    return tuple(root for allowed in allowed_paths if (root := _normalize_root(allowed)))


def _normalize_root(allowed: str) -> str:
    forms, reason = decoded_forms(allowed)
    return "" if reason else _normalize(forms[-1]) or ""


def _normalize(form: str) -> str | None:
    """Return the path without `.`, `..` and doubled slashes; None if a kernel link or an unknown home directory is
    involved."""
    if _TIDY.fullmatch(form):
        return form
    drive = form[:2] if DRIVE.match(form) else ""
    start = drive + "/" if form.startswith("/", len(drive)) else ""
    parts: list[str] = []
    for part in form[len(drive) :].split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not start:
            parts.append(part)
        if _is_magic(start, parts) or (form.startswith("~") and not (parts and parts[0].startswith("~"))):
            return None
    return start + "/".join(parts) or "."


_TIDY = re.compile(r"(?!/proc|/dev)/?[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


def _is_magic(start: str, parts: list[str]) -> bool:
    """Return True if the parts so far are a kernel link, whose target depends on the process."""
    if not parts or (start != "/" and parts[0] != ".."):
        return False
    top = parts[parts.count("..") :][:3] if parts[0] == ".." else parts[:3]
    if top[:1] == ["proc"]:
        return len(top) > 2 and top[2] in _MAGIC_LINKS
    return len(top) == 2 and top[0] == "dev" and top[1] in _MAGIC_DEVICES
