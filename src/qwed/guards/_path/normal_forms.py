"""Decoded forms of a path, and the reasons why a path cannot be resolved from its text."""

import re
import unicodedata
from fnmatch import fnmatchcase
from urllib.parse import unquote

from qwed.model.unicode_normal import normalize

MAX_LENGTH = 4_096
MAX_DECODINGS = 8

DRIVE = re.compile(r"[A-Za-z]:/")
_DRIVE_RELATIVE = re.compile(r"[A-Za-z]:(?!/)")
# Short names, devices, streams, patterns and endings that Windows drops: each is an alias of some file.
_DRIVE_ALIAS = re.compile(
    r"(?i)~\d|[:<>\"|?*]|(?<![./ ])[. ]+(?:/|\Z)"
    r"|(?:^|/)(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.[^/]*)?(?:/|\Z)"
)
_SCHEME = re.compile(r"(?i)(?![a-z]:/(?!/))(?:[a-z][a-z0-9+.-]*:)+/|(?:data|file|javascript|jar|php|zip|phar|url):")
_FILE_URL = re.compile(r"(?i)file:(?://(?:localhost|127\.0\.0\.1)?(?=/)|(?=/(?!/)))")
_EXPANDED = re.compile(r"\$[A-Za-z_{(]|`|(?:^|/)%[A-Za-z_]\w*%")
# Names of nested Java classes and of office lock files contain a dollar sign that no shell expands.
_DOLLAR_NAMES = re.compile(r"(?<=\w)\$\w+(?=[\w$]*\.class\Z)|(?<=~)\$(?=[^/]*\.(?:docx?|xlsx?|pptx?)\Z)")
_GLOB = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_DOTS_ONLY = re.compile(r"(?:^|,)\.*(?:,|$)")
# Some systems drop the blanks of `.. `, and others read `%u002e` or a malformed byte as a dot.
_BLANK_DOTS = re.compile(r"(?:^|/)(?=[. ]* )[. ]+(?:/|$)")
# Names that some programs read as `..`: `....//` after one filter pass, `..;` cut at the semicolon.
_READ_AS_CLIMB = re.compile(r"(?:^|/)(?:\.{3}/|\.{4,}(?:/|$)|\.\.[;%&|<>\"?*:,!^])|(?i:&#x?[0-9a-f]{1,6};)")
_STREAM = re.compile(r"(?i)::?\$(?:data|index_allocation|i30|bitmap)|\.\w{1,5}:(?!\d+(?::\d+)?\Z)[\w.$]+\Z")
_MALFORMED = re.compile(r"(?i)%u[0-9a-f]{4}|\ufffd")
_LOOK_ALIKES = str.maketrans("\u2044\u2215\u29f8\u2571\u2216\u29f5\u29f9\u3002\uff61", "////\\\\\\..")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# Joiners between letters of Persian or Hindi, and inside an emoji, are part of how the word is spelt.
_JOINED = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d](?=[^\x00-\x7f])")


def decoded_forms(target: str) -> tuple[list[str], str]:
    """Return every form a later reader may decode the text to, fully decoded last, and the reason why the path is
    unresolvable or ""."""
    if not target.strip():
        return [""], "the path is empty"
    if len(target) > MAX_LENGTH:
        return [target[:MAX_LENGTH]], f"the path is longer than {MAX_LENGTH} characters"
    forms = [target]
    for _ in range(MAX_DECODINGS):
        decoded = _decode_once(forms[-1])
        if decoded == forms[-1]:
            return forms, _unresolvable_reason(forms)
        if len(decoded) > MAX_LENGTH:
            return forms, f"the path is longer than {MAX_LENGTH} characters"
        forms.append(decoded)
    return forms, f"the path is encoded more than {MAX_DECODINGS} times"


def _decode_once(form: str) -> str:
    compatible = normalize("NFKC", unquote(form, errors="replace")).translate(_LOOK_ALIKES)
    return _FILE_URL.sub("", compatible, count=1).strip().replace("\\", "/") if compatible == form else compatible


def _unresolvable_reason(forms: list[str]) -> str:
    for form in forms:
        if not form.isprintable() and _has_invisible(form):
            return "the path contains invisible characters"
    if any(form.startswith("\\\\") for form in forms):
        return "a network share is not a path of this machine"
    plainest = forms[-1]
    return next((reason for pattern, reason in _UNRESOLVABLE if pattern(plainest)), "")


def _has_invisible(form: str) -> bool:
    visible = _JOINED.sub("", form)
    return any(
        unicodedata.category(character) in _INVISIBLE and not "\U0001f000" <= character <= "\U0001faff"
        for character in visible
    )


def _is_expanded(path: str) -> bool:
    return _EXPANDED.search(_DOLLAR_NAMES.sub("", path) if "$" in path else path) is not None


def _can_climb_by_pattern(path: str) -> bool:
    """Return True if a shell may expand a pattern or an alternative in the path to `..`."""
    if "{" in path and (_has_slash_in_braces(path) or any(map(_can_expand_to_dots, path.split("/")))):
        return True
    return _GLOB.search(path) is not None and any(
        # A name that begins with a dot is matched only by a pattern that does.
        part.startswith(".") and part != ".." and fnmatchcase("..", part)
        for part in path.split("/")
    )


def _has_slash_in_braces(path: str) -> bool:
    """Return True if a slash is inside braces with alternatives."""
    depth = 0
    for character in path:
        depth = max(0, depth + (character == "{") - (character == "}"))
        if depth and character == "/" and "," in path:
            return True
    return False


def _can_expand_to_dots(part: str) -> bool:
    alternatives = _BRACES.findall(part)
    return "." in part and not _BRACES.sub("", part).strip(".") and any(map(_DOTS_ONLY.search, alternatives))


def _is_windows_alias(path: str) -> bool:
    return DRIVE.match(path) is not None and _DRIVE_ALIAS.search(path, 3) is not None


_UNRESOLVABLE = (
    (_DRIVE_RELATIVE.match, "a drive letter without a slash depends on the current directory"),
    (_is_windows_alias, "a short name, device or stream is another name of some file"),
    (_SCHEME.match, "a URL is not a path"),
    (_is_expanded, "the path depends on a variable"),
    (_can_climb_by_pattern, "the path depends on a pattern"),
    (_BLANK_DOTS.search, "spaces next to dots are read differently by different systems"),
    (_READ_AS_CLIMB.search, "some programs read these dots as `..`"),
    (_STREAM.search, "a data stream of a file is not a path"),
    (_MALFORMED.search, "the path contains a malformed encoding"),
)
