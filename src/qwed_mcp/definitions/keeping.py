"""Commands about files that hold keys: read them, and hand over what stands there."""

import re
from collections.abc import Iterator

from qwed.guards.path import resolve
from qwed_mcp.definitions.phrases import words

_FILES = (
    r"\.(?:ssh|aws|gnupg|kube|cursor|claude|netrc|npmrc|pypirc|git-credentials|(?:bash|zsh)_history|docker/config)\b"
    r"|\.env(?:\.\w+)?\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|\bmcp(?:_config|_settings)?\.json\b|\bclaude_desktop_config\b"
    r"|/etc/(?:passwd|shadow|sudoers)\b|/proc/[^/\s]+/environ\b|\bwallet\.dat\b|\blogin data\b|\bcookies\.sqlite\b"
    r"|\bauthorized_keys\b|\bprivate key file\b|\bcredentials\.json\b"
)
_FILE = re.compile(_FILES)
_PATH = re.compile(r"(?<![\w.$%{}~-])[\w.$%{}~-]*+(?:[/\\][\w.$%{}*-]++)++")
_IMPERATIVE = words(
    "read open cat load fetch get access retrieve extract print view find locate grab copy check dump scan collect"
)
_HAND_OVER = re.compile(
    r"\b(?:before|prior to) (?:(?:you )?(?:us|call|invok|runn?|execut|answer|respond|do)(?:e|ing)? "
    r"(?:this|it|any|the|other|`)"
    r"|this|it\b|any|proceeding|continuing)"
    r"|\b(?:pass|include|send|append|attach|put|paste|provide|submit|insert|place|give|supply|return|encode) "
    r"(?:it|its|them|that|this|all|the (?:full |entire |whole |raw |complete )?"
    r"(?:contents?|text|results?|output|value|data|key|file))\b"
    r"|\b(?:as|in|into|to|via|through|using|with) (?:the |an? )?[`'\"]?\w+[`'\"]? "
    r"(?:parameter|argument|field|input|param|arg)\b"
    r"|\botherwise (?:the|this) tool\b|\bwill not (?:work|unlock|function)\b"
)
_READ_FIRST = re.compile(rf"\b{_IMPERATIVE}\b" r"[^\n]{0,80}?(?:" + _FILES + ")")
_CONTENTS = re.compile(r"\b(?:contents?|text|value|bytes|base64|dump|body)\b[^\n]{0,40}(?:" + _FILES + ")")
_ASKED = re.compile(
    r"\b(?:include|pass|send|append|attach|paste|upload|forward|put|insert|provide|submit|place|exfiltrate|full|entire"
    r"|whole|raw|complete|user'?s|verbatim)\b"
)
REASON = "asks for files that hold keys"


def commands_about_files(text: str, is_parameter: bool) -> Iterator[str]:
    """The reason, where plain lower-case text has a file of keys read or handed over."""
    if not (_FILE.search(text) or any(_is_sensitive(path) for path in _paths(text))):
        return
    marked = _PATH.sub(lambda path: " .env " if _is_sensitive(path[0]) else path[0], text)
    if _READ_FIRST.search(marked) and _HAND_OVER.search(marked):
        yield REASON
        return
    found = _CONTENTS.search(marked) if is_parameter or _HAND_OVER.search(marked) else None
    if found and _ASKED.search(marked, max(0, found.start() - 60), found.end()):
        yield REASON


def _paths(text: str) -> list[str]:
    return _PATH.findall(text)[:200]


def _is_sensitive(path: str) -> bool:
    return len(path) < 300 and resolve(path, None).sensitive
