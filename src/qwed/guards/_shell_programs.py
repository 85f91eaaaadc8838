"""What each program does with its words: the tables the shell guard reads."""

import re
from dataclasses import dataclass

from qwed.words import EffectKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """The options of a program that are known to be harmless, and what it does to its operands."""

    effect: EffectKind | None = EffectKind.READ
    """Done to each operand; None where operands are only text."""
    flags: str = ""
    """Short options without a value."""
    valued: str = ""
    """Short options that take a value which is no file."""
    words: str = ""
    """Long options, blank-separated, each blank-delimited on both sides."""
    text_first: bool = False
    """Whether the first operand is a pattern, not a file."""
    most: int | None = None
    """More operands than this mean something else: `uniq a b` writes `b`."""
    least: int = 0
    default: str = ""
    """What it works on when no operand is given."""
    last: EffectKind | None = None
    """Done to the last operand instead."""


_HELP = " --help --version "
_HASHING = Program(flags="bctwz", words=" --check --binary --text --tag --quiet --status --strict --zero" + _HELP)
_GREP = Program(
    flags="EFGPivwxcoqshHnrRlLabTUyzZ0123456789",
    valued="eABCm",
    words=(
        " --recursive --ignore-case --line-number --count --only-matching --invert-match --word-regexp --include"
        " --exclude --exclude-dir --color --colour --max-count --fixed-strings --extended-regexp --files-with-matches"
        " --no-messages --context --after-context --before-context --quiet --regexp" + _HELP
    ),
    text_first=True,
)
_SPEAKING = Program(effect=None, flags="aAbcdefghiIklLmnopqrsSuvVwxy0123456789", words=_HELP, most=0)

READERS: dict[str, Program] = {
    "ls": Program(
        flags="aAbBcCdfFgGhHiklLmnNopqQrRsStTuUvwxXZ1",
        words=" --all --almost-all --human-readable --recursive --color --reverse --sort --time --full-time" + _HELP,
        default=".",
    ),
    "cat": Program(flags="AbeEnstTuv", words=" --number --show-all --number-nonblank --squeeze-blank" + _HELP),
    "tac": Program(words=_HELP),
    "head": Program(flags="qvz0123456789", valued="nc", words=" --lines --bytes --quiet --verbose" + _HELP),
    "tail": Program(flags="qvz0123456789", valued="nc", words=" --lines --bytes --quiet --verbose" + _HELP),
    "wc": Program(flags="clLmw", words=" --lines --words --bytes --chars --max-line-length" + _HELP),
    "stat": Program(flags="Lft", valued="c", words=" --format --printf --terse --dereference" + _HELP, least=1),
    "file": Program(flags="biLkNrsz", words=" --brief --mime --mime-type --mime-encoding" + _HELP, least=1),
    "du": Program(
        flags="abcDhHklLmsSxz0", valued="dB", words=" --max-depth --human-readable --summarize" + _HELP, default="."
    ),
    "df": Program(flags="ahHiklmPTv", valued="tx", words=" --human-readable --total --output" + _HELP),
    "tree": Program(flags="adfilpshDFrtuvCn", valued="LPI", words=" --dirsfirst --noreport" + _HELP, default="."),
    "readlink": Program(flags="efmnqsvz", words=_HELP, least=1),
    "realpath": Program(flags="emLPqsz", words=_HELP, least=1),
    "cut": Program(flags="nsz", valued="bcdf", words=" --delimiter --fields --characters --bytes --complement" + _HELP),
    "nl": Program(flags="p", valued="bdfhilnsvw", words=_HELP),
    "rev": Program(),
    "od": Program(flags="abcdfilosxv", valued="AjNtw", words=_HELP),
    "hexdump": Program(flags="bcCdovx", valued="ns"),
    "xxd": Program(flags="abEeipu", valued="cgls", most=1),
    "strings": Program(flags="afw", valued="net", words=_HELP),
    "sort": Program(
        flags="bcCdfghiMmnRrsuVz",
        valued="kt",
        words=" --reverse --numeric-sort --unique --key --field-separator" + _HELP,
    ),
    "uniq": Program(flags="cdDiuz", valued="fsw", words=" --count --repeated --unique --ignore-case" + _HELP, most=1),
    "comm": Program(flags="123z", words=_HELP, least=2, most=2),
    "join": Program(flags="i", valued="aejotv12", words=_HELP, least=2, most=2),
    "paste": Program(flags="sz", valued="d", words=_HELP),
    "diff": Program(
        flags="abBcdeEiNnqrstuwyZ", valued="U", words=" --brief --recursive --unified --color" + _HELP, least=2, most=2
    ),
    "cmp": Program(flags="bls", words=_HELP, least=1, most=2),
    "fold": Program(flags="bs", valued="w", words=_HELP),
    "column": Program(flags="tx", valued="sc", words=_HELP),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    **dict.fromkeys(
        ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum"), _HASHING
    ),
    "echo": Program(effect=None, flags="neE"),
    "printf": Program(effect=None, least=1),
    "basename": Program(effect=None, flags="az", valued="s", words=_HELP, least=1),
    "dirname": Program(effect=None, flags="z", words=_HELP, least=1),
    "seq": Program(effect=None, flags="w0123456789", valued="fs", words=_HELP, least=1, most=3),
    "which": Program(effect=None, flags="as", least=1),
    "cal": Program(effect=None, flags="13jmy"),
    **dict.fromkeys(("true", "false"), Program(effect=None)),
    **dict.fromkeys(
        ("pwd", "whoami", "uname", "uptime", "free", "nproc", "arch", "groups", "tty", "lscpu", "w"), _SPEAKING
    ),
    "hostname": Program(effect=None, flags="fisdI", most=0),
    "id": Program(effect=None, flags="gGnruz", words=_HELP, most=1),
}

CHANGERS: dict[str, Program] = {
    **dict.fromkeys(
        ("rm", "rmdir", "unlink", "shred"),
        Program(
            effect=EffectKind.DELETE,
            flags="dfiIpRruvz",
            words=" --force --recursive --verbose --dir --parents --interactive --one-file-system --no-preserve-root ",
            least=1,
        ),
    ),
    "mv": Program(effect=EffectKind.WRITE, flags="bfinuvT", words=" --force --no-clobber --verbose ", least=2),
    "cp": Program(
        last=EffectKind.WRITE,
        flags="abdfHiLlnPpRrsTuvx",
        words=" --archive --force --recursive --no-clobber --verbose --preserve ",
        least=2,
    ),
    "ln": Program(effect=EffectKind.WRITE, flags="bfinPrsTv", words=" --symbolic --force ", least=1),
    "touch": Program(effect=EffectKind.WRITE, flags="acmh", valued="dt", words=" --no-create --date ", least=1),
    "mkdir": Program(effect=EffectKind.WRITE, flags="pv", valued="m", words=" --parents --mode --verbose ", least=1),
    "tee": Program(effect=EffectKind.WRITE, flags="aip", words=" --append ", least=1),
    "truncate": Program(effect=EffectKind.WRITE, flags="c", valued="s", words=" --size ", least=1),
    "printenv": Program(effect=EffectKind.SECRET, flags="0", default="environment"),
    "env": Program(effect=EffectKind.SECRET, flags="0", default="environment", most=0),
    **dict.fromkeys(
        ("ping", "nslookup", "dig", "host", "whois", "traceroute"),
        Program(effect=EffectKind.NETWORK, flags="46", valued="cwW", least=1),
    ),
}

ADMINISTRATION = frozenset(
    (
        *(
            "su",
            "passwd",
            "chown",
            "chmod",
            "chgrp",
            "chattr",
            "setfacl",
            "setcap",
            "visudo",
            "useradd",
            "userdel",
            "usermod",
        ),
        *(
            "groupadd",
            "groupdel",
            "adduser",
            "deluser",
            "systemctl",
            "service",
            "journalctl",
            "mount",
            "umount",
            "swapoff",
        ),
        *(
            "iptables",
            "ip6tables",
            "nft",
            "ufw",
            "ifconfig",
            "route",
            "sysctl",
            "insmod",
            "rmmod",
            "modprobe",
            "crontab",
        ),
        *("reboot", "shutdown", "halt", "poweroff", "init", "telinit", "kill", "killall", "pkill", "renice", "chroot"),
        *("mkfs", "fdisk", "parted", "sfdisk", "mkswap", "wipefs", "losetup", "hostnamectl", "timedatectl", "loginctl"),
        *(
            "apt",
            "apt-get",
            "dpkg",
            "yum",
            "dnf",
            "rpm",
            "apk",
            "pacman",
            "snap",
            "update-rc.d",
            "ldconfig",
            "auditctl",
        ),
    )
)
RAISERS = frozenset({"sudo", "doas", "pkexec"})
DOWNLOADERS = frozenset(
    {"curl", "wget", "fetch", "aria2c", "lynx", "nc", "ncat", "netcat", "socat", "ftp", "scp", "ssh"}
)
DECODERS = frozenset(
    {"base64", "base32", "basenc", "xxd", "openssl", "uudecode", "gunzip", "zcat", "rev", "tr", "printf"}
)
WRAPPERS = RAISERS | {
    *("env", "xargs", "timeout", "nohup", "nice", "ionice", "time", "command", "builtin", "exec", "busybox", "setsid"),
    *("stdbuf", "watch", "strace", "unshare", "parallel", "script", "find", "su", "chroot", "flock", "ssh"),
}
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "csh", "tcsh", "fish", "pwsh", "powershell"})
INTERPRETERS = {
    "python": re.compile(r"-[A-Za-z]*c.*"),
    "perl": re.compile(r"-[A-Za-z0-9]*[eE].*"),
    "ruby": re.compile(r"-[A-Za-z0-9]*e.*"),
    "node": re.compile(r"-(?:e|p|pe|-eval|-print)(?:=.*)?"),
    "php": re.compile(r"-(?:r|B|R|E|-run).*"),
    "lua": re.compile(r"-e.*"),
    **dict.fromkeys(SHELLS, re.compile(r"-[A-Za-z]*c[A-Za-z]*|-(?i:command|enc|encodedcommand)")),
}
"""Programs that run code, and the options that take it as text."""

_CURL_FLAGS = """
-s -S -f -L -I -i -v -k -g -4 -6 -G -sS -fsSL -sSL -sL -fsS -sSf -sf --silent --show-error --fail --location --head
--include --verbose --compressed --http1.1 --http2 --get
"""
CURL_FLAGS = frozenset(_CURL_FLAGS.split())
CURL_VALUED = frozenset(
    {"-H", "--header", "-X", "--request", "-A", "--user-agent", "-m", "--max-time", "--retry", "-e"}
)
CURL_DATA = frozenset({"-d", "--data", "--data-raw", "--json"})
CURL_OUTPUT = frozenset({"-o", "--output"})

FIND_FLAGS = frozenset(
    {"-print", "-print0", "-empty", "-not", "-o", "-a", "-or", "-and", "-readable", "-xdev", "-mount", "-prune"}
)
FIND_VALUED = frozenset(
    {
        *(
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-type",
            "-maxdepth",
            "-mindepth",
            "-size",
            "-mtime",
            "-mmin",
            "-atime",
        ),
        *("-ctime", "-user", "-group", "-perm", "-regex", "-iregex"),
    }
)
PS_LISTINGS = frozenset({"aux", "ax", "-e", "-ef", "-A", "-a", "-aux", "-f", "-u"})
"""Anything more may be the `e` that shows the environment of every process."""
