"""Paths known to hold secrets: keys, credentials, password stores, histories, process memory."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from qwed.model.data_files import read_lists

_BROWSER_FILES = (
    r"login data(?: for account)?(?:-journal)?|cookies(?:\.sqlite|\.binarycookies)?|web data|local state"
    r"|logins\.json|key[34]\.db|signons\.sqlite|cert[89]\.db|formhistory\.sqlite|places\.sqlite"
)
_BROWSERS = (
    r"(?:\.mozilla|firefox|\.thunderbird|thunderbird|google-chrome|chromium|chrome|brave-browser|bravesoftware"
    r"|microsoft-edge|edge|safari|opera|vivaldi)"
)
_HISTORIES = "bash|zsh|sh|ksh|ash|csh|python|psql|mysql|sqlite|node_repl|rediscli|irb|pry|mongo|scala|ghci|php|lua"
_WORDS = (
    r"(?:my[_-]?)?(?:passwords?|passwd|secrets?|creds?|credentials|api[_-]?(?:keys?|tokens?)|apikeys?|private[_-]?keys?"
    r"|master[_-]?(?:passwords?|key)|access[_-]?(?:keys?|tokens?)|account[_-]?keys?|root[_-]?keys?|accesskeys)"
)
_PARTS = {"{browsers}": _BROWSERS, "{browser_files}": _BROWSER_FILES, "{histories}": _HISTORIES, "{words}": _WORDS}


def _insert_parts(pattern: str) -> str:
    for name, part in _PARTS.items():
        pattern = pattern.replace(name, part)
    return pattern


_TABLE = {key: tuple(map(_insert_parts, rows)) for key, rows in read_lists(__file__, "sensitive.txt").items()}
_ENDINGS = _TABLE["ending"]
_COPY_ENDINGS = re.compile(
    r"(?:\.(?:bak|old|orig|copy|backup|save|swp|swo|tmp|\d{1,2})|~|[-_](?:old|bak|backup)|[. ]+)\Z"
)
# Certificates are public; files with these names do not hold private keys.
_PUBLIC = re.compile(
    r"(?:.*[._-])?(?:certs?|certificates?|cacerts?|ca[._-](?:bundle|certificates?|certs?|chain)|(?:full)?chain"
    r"|intermediate(?:[._-]ca)?|root[._-]ca|trusted[._-]certs?)\d*\.(?:pem|jks)"
    r"|(?:.*[._-])?(?:public(?:[._-]?key)?|pub)\.(?:pem|key)"
)
_PUBLIC_CHAIN = re.compile(r"/etc/letsencrypt/(?:live|archive)/[\w.-]+/(?:cert|chain|fullchain)\d*\.pem")

_PUBLIC_PLACES = ("/etc/ssl/certs/", "/usr/share/ca-certificates/", "/etc/pki/ca-trust/", "/etc/pki/tls/certs/")

_PLACE = re.compile("|".join(_TABLE["place"]))
_TREE = re.compile("|".join((rf"(?:^|/)\.(?:{'|'.join(_TABLE['directory'])})(?:/|$)", *_TABLE["tree"])))
_NAME = re.compile("|".join(_TABLE["name"]))

_GLOB = re.compile(r"[*?\[]")
_GLOB_TARGETS = tuple(tuple(place.split("/")) for place in _TABLE["glob target"])
_GLOB_NAMES = _TABLE["glob name"]
_MIN_LITERAL = 3
_MIN_UNLIKE = 2
"""Literal characters required for distinctive names: `.e*` and `id*` are meant to match them."""


_CLIMB = re.compile(r"\A(?:\.\./)+")


def is_sensitive(path: str) -> bool:
    """Return True if the normalised path is known to hold secrets, on case-sensitive and case-insensitive systems."""
    folded = path.casefold()
    if folded.startswith("env:"):
        return True
    if folded.startswith("../"):
        # The number of levels up is unknown; assume the file system root, which is the worst case.
        folded = "/" + _CLIMB.sub("", folded)
    if _PUBLIC_CHAIN.fullmatch(folded) or (folded.startswith(_PUBLIC_PLACES) and folded.endswith((".pem", ".crt"))):
        return False
    name = _plain_name(folded.rpartition("/")[2])
    if (name.endswith(_ENDINGS) or _NAME.fullmatch(name)) and not _PUBLIC.fullmatch(name):
        return True
    if _PLACE.fullmatch(folded) or _TREE.search(folded):
        return True
    return _GLOB.search(folded) is not None and _may_match_sensitive(folded)


def _plain_name(name: str) -> str:
    """Return the file name without a data stream and without the suffixes of copies."""
    name = name.partition(":")[0] or name
    for _ in range(3):
        shorter = _COPY_ENDINGS.sub("", name)
        if shorter in ("", name):
            return name
        name = shorter
    return name


@lru_cache(maxsize=256)
def _may_match_sensitive(pattern: str) -> bool:
    parts = pattern.split("/")
    if any(_matches(target, parts) for target in _GLOB_TARGETS):
        return True
    patterns = [(part, _literals(part)) for part in parts if _GLOB.search(part)]
    return any(
        literals >= (_MIN_UNLIKE if name.startswith((".", "id_")) else _MIN_LITERAL) and fnmatchcase(name, part)
        for part, literals in patterns[:8]
        for name in _GLOB_NAMES
    )


def _literals(part: str) -> int:
    """Return the number of characters of a pattern that identify the file, without its extension."""
    stem = part if part.startswith(".") else part.partition(".")[0]
    return len(stem) - sum(map(stem.count, "*?[]"))


def _matches(target: tuple[str, ...], parts: list[str]) -> bool:
    if len(target) != len(parts) or (target[0] == "~") != (parts[0] == "~"):
        # No pattern matches a home directory: `~` is expanded before patterns are.
        return False
    return all(map(fnmatchcase, target, parts))
