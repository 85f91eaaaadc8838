"""Where a path leads, read off its text alone: inside the allowed roots, outside, or nowhere we can name.

Nothing here touches the file system, so a symbolic link inside a root is followed by whoever opens it, not by us.
A path is judged in every form a later reader may turn it into (percent-decoded, full-width, backslashed); the worst
form counts.
"""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

MAX_LENGTH = 4_096
MAX_DECODINGS = 8


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


_PLAIN = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_./-]*[A-Za-z0-9_/-]|[A-Za-z0-9_/]")
_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"(?i)[a-z][a-z0-9+.-]*:/|(?:data|file|javascript):")
_FILE_URL = re.compile(r"(?i)file:(?://(?:localhost)?(?=/)|(?=/(?!/)))")
_EXPANDED = re.compile(r"\$[A-Za-z_{(]|`|(?:^|/)%[A-Za-z_]\w*%")
# `.?` and `.*` match `..` in some shells, so such a name may lead upwards.
_DOTTED_GLOB = re.compile(r"(?:^|/)\.[^/]*[*?\[{]|(?:^|/)[\[{][^/]*\.")
# Some systems drop the blanks of `.. `, and others read `%u002e` or a malformed byte as a dot.
_BLANK_DOTS = re.compile(r"(?:^|/)(?=[. ]* )[. ]+(?:/|$)")
_MALFORMED = re.compile(r"(?i)%u[0-9a-f]{4}|\ufffd")
_LOOK_ALIKES = str.maketrans("\u2044\u2215\u29f8\u2571\u2216\u29f5\u29f9\u3002\uff61", "////\\\\\\..")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_MAGIC_LINKS = frozenset({"root", "cwd", "fd", "exe", "map_files", "task"})
_MAGIC_DEVICES = frozenset({"fd", "stdin", "stdout", "stderr"})

_SENSITIVE_PLACE = re.compile(
    r"/etc/(?:passwd|shadow|gshadow|sudoers|master\.passwd|security/opasswd|krb5\.keytab)(?:[-~.].*)?"
    r"|/etc/(?:sudoers\.d|ssl/private|kubernetes|wireguard|letsencrypt/(?:live|archive))(?:/.*)?|/etc/ssh/ssh_host_.*"
    r"|/proc/(?:kcore|kallsyms|[^/]+/(?:environ|mem|maps|smaps|cmdline|auxv|stack|syscall))"
    r"|/dev/(?:mem|kmem|port|sd[a-z]\d*|nvme.*|x?vd[a-z]\d*|disk/.*|mapper/.*)"
    r"|(?:/var)?/run/(?:docker\.sock|containerd/.*|secrets(?:/.*)?)|/var/lib/(?:kubelet|docker)(?:/.*)?"
)
_SENSITIVE_DIRECTORY = re.compile(
    r"(?:^|/)\.(?:ssh|gnupg|aws|azure|kube|docker|password-store|config/(?:gcloud|gh)|terraform\.d)(?:/|$)"
)
_SENSITIVE_NAME = re.compile(
    r"\.netrc|_netrc|\.pgpass|\.my\.cnf|\.npmrc|\.pypirc|\.git-credentials|\.htpasswd|\.dockercfg|\.envrc|\.vault-token"
    r"|\.(?:bash|zsh|sh|python|psql|mysql|node_repl)_?history|\.env(?:\.(?!example$|sample$|template$|dist$).*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?!.*\.pub$).*|wp-config\.php"
    r"|(?:credentials|client_secrets?|service[_-]account)(?:\.json)?|secrets?\.(?:ya?ml|json|toml|env)"
)

_SENSITIVE_ENDINGS = (
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".kdbx",
    ".ppk",
    ".keytab",
    ".tfstate",
    ".agekey",
)
_COPY_ENDINGS = re.compile(r"(?:\.(?:bak|old|orig|copy)|~)\Z")


def resolve(target: str, allowed_paths: tuple[str, ...] | None) -> PathFinding:
    """Where `target` leads; without `allowed_paths` every path we can name is inside."""
    if _PLAIN.fullmatch(target) and len(target) <= MAX_LENGTH:
        return _judge(target, allowed_paths)
    forms, reason = _forms(target)
    if reason:
        return PathFinding(Place.UNRESOLVABLE, forms[-1], any(map(_is_sensitive, forms)), reason)
    findings = [_judge(form, allowed_paths) for form in forms]
    worst = max(findings, key=lambda each: _SEVERITY[each.place])
    return PathFinding(worst.place, findings[-1].path, any(each.sensitive for each in findings), worst.reason)


_SEVERITY = {Place.INSIDE: 0, Place.OUTSIDE: 1, Place.UNRESOLVABLE: 2}


def _forms(target: str) -> tuple[list[str], str]:
    """The text in every form a later reader may give it, plainest last; and why none of them can be trusted."""
    if not target.strip():
        return [""], "the path is empty"
    if len(target) > MAX_LENGTH:
        return [target[:MAX_LENGTH]], f"the path is longer than {MAX_LENGTH} characters"
    forms = [target]
    for _ in range(MAX_DECODINGS):
        plainer = _plainer(forms[-1])
        if plainer == forms[-1]:
            return forms, _obstacle(forms)
        if len(plainer) > MAX_LENGTH:
            return forms, f"the path is longer than {MAX_LENGTH} characters"
        forms.append(plainer)
    return forms, f"the path is encoded more than {MAX_DECODINGS} times"


def _plainer(form: str) -> str:
    compatible = unicodedata.normalize("NFKC", unquote(form, errors="replace")).translate(_LOOK_ALIKES)
    return _FILE_URL.sub("", compatible, count=1).strip().replace("\\", "/") if compatible == form else compatible


def _obstacle(forms: list[str]) -> str:
    for form in forms:
        if not form.isprintable() and any(unicodedata.category(character) in _INVISIBLE for character in form):
            return "the path holds invisible characters"
    if any(form.startswith("\\\\") for form in forms):
        return "a network share is no path of this machine"
    plainest = forms[-1]
    return next((reason for pattern, reason in _OBSTACLES if pattern(plainest)), "")


_OBSTACLES = (
    (_DRIVE.match, "a drive letter is no path of this machine"),
    (_SCHEME.match, "a URL is no path"),
    (_EXPANDED.search, "the path depends on a variable"),
    (_DOTTED_GLOB.search, "the path depends on a pattern"),
    (_BLANK_DOTS.search, "blanks beside dots are read differently by different systems"),
    (_MALFORMED.search, "the path holds a malformed encoding"),
)


def _judge(form: str, allowed_paths: tuple[str, ...] | None) -> PathFinding:
    path = _normal(form)
    if path is None:
        return PathFinding(
            Place.UNRESOLVABLE, form, sensitive=True, reason="where it leads cannot be told from its text"
        )
    if allowed_paths is None:
        return PathFinding(Place.INSIDE, path, _is_sensitive(path))
    roots = _roots(allowed_paths)
    if path.startswith("~") and not any(root.startswith("~") for root in roots):
        return PathFinding(Place.UNRESOLVABLE, path, _is_sensitive(path), "whose home directory it is cannot be told")
    return _place(path, roots)


def _place(path: str, roots: tuple[str, ...]) -> PathFinding:
    # Nobody says which root a relative path starts from, so it must stay inside whichever it is.
    relative = not path.startswith(("/", "~"))
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
    here: bool
    """Whether every relative path that does not climb is inside."""
    prefixes: tuple[str, ...]
    """Sorted, and none the beginning of another, so only the last one before a path can be its beginning."""


@lru_cache(maxsize=1024)
def _fences(roots: tuple[str, ...]) -> _Fences:
    prefixes: list[str] = []
    for prefix in sorted(root if root.endswith("/") else root + "/" for root in roots if root != "."):
        if not prefixes or not prefix.startswith(prefixes[-1]):
            prefixes.append(prefix)
    return _Fences("." in roots, tuple(prefixes))


def _inside(path: str, fences: _Fences) -> bool:
    if fences.here and path and not path.startswith(("/", "~", "../")) and path != "..":
        return True
    closed = path if path.endswith("/") else path + "/"
    before = bisect_right(fences.prefixes, closed)
    return bool(path and before) and closed.startswith(fences.prefixes[before - 1])


@lru_cache(maxsize=1024)
def _roots(allowed_paths: tuple[str, ...]) -> tuple[str, ...]:
    """The normal forms of the allowed paths; one that is no plain path allows nothing."""
    return tuple(root for each in allowed_paths if (root := _root(each)))


def _root(allowed: str) -> str:
    forms, reason = _forms(allowed)
    return "" if reason else _normal(forms[-1]) or ""


def _normal(form: str) -> str | None:
    """The path without `.`, `..` and doubled slashes; None where a kernel link or somebody's home decides."""
    if _TIDY.fullmatch(form):
        return form
    start = "/" if form.startswith("/") else ""
    kept: list[str] = []
    for part in form.split("/"):
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
    if start and kept[:1] == ["proc"]:
        return len(kept) > 2 and kept[2] in _MAGIC_LINKS
    return bool(start) and len(kept) == 2 and kept[0] == "dev" and kept[1] in _MAGIC_DEVICES


def _is_sensitive(path: str) -> bool:
    folded = path.casefold()
    if folded.startswith("../"):
        # How far up it climbs is unknown; the worst is the top.
        folded = "/" + folded.lstrip("./")
    name = _COPY_ENDINGS.sub("", folded.rpartition("/")[2])
    if name.endswith(_SENSITIVE_ENDINGS) or _SENSITIVE_NAME.fullmatch(name) or _SENSITIVE_PLACE.fullmatch(folded):
        return True
    return "." in folded and _SENSITIVE_DIRECTORY.search(folded) is not None
