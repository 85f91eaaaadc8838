"""Requests to hand over files that hold keys.

A tool may say which file it reads, although few published tools do. No legitimate tool asks to pass the content on.
"""

import re
from collections.abc import Iterator

from qwed.guards._prompt_injection.regex_parts import any_of, words
from qwed.guards.path import resolve

_FILE = re.compile(
    r"\.(?:ssh|aws|gnupg|kube|cursor|claude|netrc|npmrc|pypirc|git-credentials|(?:bash|zsh)_history|docker/config)\b"
    r"|\.env(?:\.\w+)?\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|\bmcp(?:_config|_settings)?\.json\b|\bclaude_desktop_config\b"
    r"|/etc/(?:passwd|shadow|sudoers)\b|/proc/[^/\s]+/environ\b|\bwallet\.dat\b|\blogin data\b|\bcookies\.sqlite\b"
    r"|\bauthorized_keys\b|\bprivate key file\b|\bcredentials\.json\b|`(?:print)?env`|\bos\.environ\b|\bprocess\.env\b"
    r"|\b(?:user|browser)'?s? (?:browser )?(?:cookies|passwords|keychain)\b|\buser'?s (?:private|ssh) keys?\b"
    r"|\b(?:the user'?s|your|all) environment variables\b"
)
_PATH = re.compile(r"(?<![\w.$%{}~-])[\w.$%{}~-]*+(?:[/\\][\w.$%{}*-]++)++")
_MARK = " .env "
_GIVE = words(
    "pass include send append attach put stick drop paste provide submit insert place give supply return encode hand"
)
_WHAT = (
    r"(?:me|it|its|them|that|this|all|along|over|the (?:\w+ )?(?:contents?|text|results?|output|value|data|key|file))"
)
_HANDED = words("included passed sent appended attached supplied given handed added placed pasted copied")
_HAND_OVER = re.compile(
    any_of(
        r"\b(?:before|prior to) (?:(?:you )?(?:us|call|invok|runn?|execut|answer|respond|do)(?:e|ing)? "
        r"(?:this|it|any|the|other|`)|this|it\b|any|proceeding|continuing)",
        rf"(?<!never )(?<!not )\b{_GIVE} {_WHAT}\b",
        rf"(?<!never )(?<!not )\b(?:be|are|is) {_HANDED} (?:in|into|as|to|with)\b",
        r"\b(?:as|in|into|to|via|through|using|with) (?:the |an? )?[`'\"]?\w+[`'\"]? "
        r"(?:parameter|argument|field|input)\b|\binto `\w+`",
        r"\botherwise (?:the|this) tool\b|\bwill not (?:work|unlock|function)\b|\bonly works (?:when|if|with)\b",
    )
)
_CONTENTS = re.compile(rf"\b(?:contents?|text|value|bytes|base64|dump|body)\b[^\n]{{0,40}}(?:{_FILE.pattern})")
_ASKED = re.compile(
    r"\b(?:include|pass|send|append|attach|paste|upload|forward|put|insert|provide|submit|place|exfiltrate|full|entire"
    r"|whole|raw|complete|user'?s|verbatim|expects|requires|needs|given|holds|hold)\b"
)
REASON = "asks for files that hold keys"


def find_key_file_requests(text: str, is_parameter: bool) -> Iterator[str]:
    """Yield the reason if plain lower-case text asks to hand over a file that holds keys."""
    marked = (
        _PATH.sub(lambda path: _MARK if _is_sensitive(path[0]) else path[0], text)
        if "/" in text or "\\" in text
        else text
    )
    if not _FILE.search(marked):
        return
    if _HAND_OVER.search(marked):
        yield REASON
        return
    match = _CONTENTS.search(marked) if is_parameter else None
    if match and _ASKED.search(marked, max(0, match.start() - 60), match.end()):
        yield REASON


def _is_sensitive(path: str) -> bool:
    return len(path) < 300 and resolve(path, None).sensitive
