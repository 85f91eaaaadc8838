"""Recognises commands and code by their form, in texts whose parameter says nothing about them.

A form is strict, so that a sentence does not have it: what is missed here has no name that says it is executed.
"""

import re

_LONGEST = 8_192
_PROGRAM_TEXT = """
apt apt-get aws awk az bash base64 brew bun bunx busybox cargo cat chattr chgrp chmod chown conda cp crontab csh curl
dash dd deno diskutil dnf docker docker-compose dpkg doas echo eval exec export fdisk fdformat find firewall-cmd fish
gcloud gdb gh git gpg grep helm iptables java jq journalctl kill killall ksh kubectl launchctl ldapmodify ln ls make
mkdir mkfifo mkfs mount mv mysql mysqldump nc ncat netcat nft node nohup npm npx openssl parted perl pg_dump php pip
pip3 pipx pkill pnpm podman poweroff powershell printf psql pwsh python python2 python3 rclone reboot redis-cli rm rmdir
rsync ruby scp screen sed setsid sftp sh shred shutdown socat source sqlite3 ssh sudo swapoff sysctl systemctl tar tee
telnet terraform tmux touch trap truncate ufw umount unlink useradd userdel usermod uv uvx vim wget xargs yarn yum zsh
cmd cmd.exe del format powershell.exe remove-item invoke-expression invoke-webrequest iex iwr reg rundll32 schtasks
"""
_PROGRAMS = frozenset(_PROGRAM_TEXT.split())
_DESTROYING_TEXT = "rm rmdir shred mkfs dd unlink shutdown reboot poweroff killall pkill del truncate"
_DESTROYING = frozenset(_DESTROYING_TEXT.split())
_FIRST = re.compile(
    r"\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:(?:sudo|doas|nohup|env|time|exec)\s+(?:-\w+\s+)*)*([\w./\\-]{1,128})(?=\s|\Z)"
)
_OPTION = re.compile(r"\s--?[A-Za-z][\w-]*|\s/[a-zA-Z]\b")
_SYNTAX = re.compile(r"&&|\|\||\||;\s*\S|\$\(|\$\{|`|>{1,2}\s*[\w./&~]|<\(|<<|\s<\s*[\w./]|\w@[\w.-]+")
_PATHLIKE = re.compile(r"\s(?:[~.]{0,2}/\S*|[\w*-]+\.[\w*]+|\*\S*|\S+://\S+|[A-Za-z]:\\\S*|[a-z]+=\S+)")
_SEPARATOR = re.compile(r"&&|\|\|?|;|\$\(|`")
_MOST_PARTS = 50
_FUNCTION = re.compile(r"\s*[\w:.-]{1,64}\s*\(\)\s*\{[^}]*[|;&][^}]*\}")
_SENTENCE = re.compile(r"[.!?]\s+[A-Z]|\b(?:the|and|is|are|was|that|this|with|please|should|how|why|what|when)\b")

_CODE = re.compile(
    r"""\b(?:fetch|eval|Function|importScripts|setTimeout|setInterval|sendBeacon|XMLHttpRequest|WebSocket|require
    |execSync|spawnSync|alert|atob|__import__|exec|compile|getattr|globals|import|open)(?:\(|\s{1,8}\(\s*["'`])
    |\b(?:document|window|localStorage|sessionStorage|navigator|globalThis|process|child_process|chrome|location)
    (?:\s*+\.\s*+[A-Za-z_$]\w*+){1,8}+\s*+(?:\(|=[^=])
    |\bdocument\s*\.\s*(?:cookie|domain|forms|body)\b|\b(?:localStorage|sessionStorage|indexedDB)\b
    |\b(?:document|window|globalThis|self)\s*\[\s*["'`]
    |\b(?:os|subprocess|shutil|sys|socket|pickle|ctypes|builtins|importlib|requests|urllib|pathlib)\s*\.\s*[a-z_]\w*\s*\(
    |^\s*(?:import\s+[\w.]+|from\s+[\w.]+\s+import\s+\w)
    |^\s*(?:javascript|vbscript)\s*:|\bthis\s*\.\s*constructor\b|\bconstructor\s*\.\s*constructor\b
    |\b(?:Runtime\s*\.\s*getRuntime|System\s*\.\s*(?:exit|getenv)|T\s*\(\s*java\.|ProcessBuilder|Files\s*\.\s*write)
    |\{\{[^{}]{0,400}(?:__class__|__globals__|__subclasses__|config\.|cycler|lipsum)
    |<\?php\b|<script\b|<%=?\s*(?:`|\w+\s*[.(])|!!(?:python|ruby|java)\b|!ruby/|tag:yaml\.org,2002:python
    |(?:^|[=(,;])\s*(?:WEBSERVICE|IMPORT(?:XML|DATA|HTML|FEED|RANGE)|FILTERXML|DDE|REGISTER\.ID)\s*\(|\#\{\s*[`\w]+\s*[.(]""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)


def is_command(text: str) -> bool:
    """Return True if a text has the form of a shell command: a known program with options, a path or shell syntax."""
    if len(text) > _LONGEST:
        return False
    return _is_injection(text) or any(map(_is_one_command, (text, *_SEPARATOR.split(text, _MOST_PARTS)[1:])))


_INJECTION = re.compile(r"\s*[\w.:/@-]{0,128}['\")]{0,2}\s{0,4}(?:;|&&?|\|\|?|\n)\s{0,4}([\w./\\-]{1,128})\s+[^\s=]")


def _is_injection(text: str) -> bool:
    """Return True if a command follows one word: `pod; kubectl delete ns prod`."""
    match = _INJECTION.match(text)
    return match is not None and _program_of(match[1]) in _PROGRAMS


def _is_one_command(text: str) -> bool:
    match = _FIRST.match(text)
    if match is None:
        return _FUNCTION.match(text) is not None
    program = _program_of(match[1])
    if program not in _PROGRAMS or match[1] == text.strip():
        return False
    if _SENTENCE.search(text) and not _SYNTAX.search(text):
        return False
    return bool(_OPTION.search(text) or _SYNTAX.search(text) or (_PATHLIKE.search(text) and _is_short(text, program)))


def _program_of(word: str) -> str:
    """Return the name of a program without its directory and version: `/sbin/mkfs.ext4` is `mkfs`."""
    name = re.split(r"[/\\]", word)[-1].lower()
    return name if name in _PROGRAMS else name.partition(".")[0]


def _is_short(text: str, program: str) -> bool:
    """Return True if few enough words name a path: `rm notes.txt`, but not `make a page about node.js`."""
    return len(text.split()) <= (8 if program in _DESTROYING else 4)


def are_command_words(words: object) -> bool:
    """Return True if a list is the words of a command: `["rm", "-rf", "/"]`."""
    if not isinstance(words, list | tuple) or len(words) < 2 or not all(isinstance(word, str) for word in words):
        return False
    return _program_of(words[0]) in _PROGRAMS and is_command(" ".join(words[:100]))


def is_substitution(text: str) -> bool:
    """Return True if a shell would replace the text, or a word of it, with the output of a command: `$(id)`."""
    return len(text) <= _LONGEST and _SUBSTITUTION.fullmatch(text) is not None


_SUBSTITUTION = re.compile(
    r"\s*[\w./:@-]{0,128}(?:`[^`\n]{1,400}`|\$\([^()\n]{1,400}\)|\$\{IFS\}|[<>]\([^()\n]{1,400}\))[\w./:@-]{0,128}\s*"
)


def reads_other_file(text: str) -> bool:
    """Return True if the text is markup that includes a file or an address, or an image that executes a script."""
    return _ENTITY.search(text, 0, _LONGEST) is not None or _SCRIPTED_IMAGE.search(text, 0, _LONGEST) is not None


_SCRIPTED_IMAGE = re.compile(
    r"<svg\b[^<>]{0,400}>.{0,2000}?<script\b|<svg\b[^<>]{0,400}\bon\w+\s*=", re.IGNORECASE | re.DOTALL
)


_ENTITY = re.compile(
    r"<!ENTITY\s[^<>]{0,200}?\b(?:SYSTEM|PUBLIC)\s|<xi:include\s|<(?:iframe|object|embed|img|image|use|link|frame)\b[^<>]{0,400}?(?:src|href|data)\s*=\s*[\"']?\s*(?:file|jar|php|ftp):|<!DOCTYPE\s[^<>\[]{0,200}?\bSYSTEM\s+[\"'](?!about:)"
)


def is_serialized(text: str) -> bool:
    """Return True if the text is an object of Python, Java or .NET in base64, whose reader executes what it names."""
    return _SERIALIZED.fullmatch(text) is not None


_SERIALIZED = re.compile(r"(?:gAS[UVW]|gAN[jc]|gAJ[jc]|rO0AB|AAEAAAD/{2,8})[A-Za-z0-9+/_-]{12,}={0,2}")


def has_options(text: str) -> bool:
    """Return True if an operand has an option, or would be run: `--output=x`, `HEAD --ext-diff`, `|id`."""
    return _OPTIONS.search(text) is not None


_OPTIONS = re.compile(r"(?:\A|\s)--[a-z][\w-]+|\A\s*\|\s*\w|\w\s*\|\s*\Z")


def has_code(text: str) -> bool:
    """Return True if a text calls or reaches something as only code does."""
    return _CODE.search(text, 0, _LONGEST) is not None
