"""Programs that speak to other machines: what they fetch, send, store and run on the way."""

import re

from qwed.guards._shell.model import Call, Look, Source, Violation, Word, joined, names_in
from qwed.guards._shell.options import Program, Rule, parsed, values_of
from qwed.words import EffectKind

_CURL = Program(
    flags="sSfLIivkgG46Ojn#NRaJZplq0123",
    valued="HXAmeubYyrwxtCEcDPQdFToKz",
    words=names_in(
        """
        --silent --show-error --fail --location --head --include --verbose --compressed --http1.1 --http2 --get
        --insecure --progress-bar --no-progress-meter --fail-with-body --remote-name --create-dirs --globoff --ipv4
        --ipv6 --tlsv1.2 --tlsv1.3 --http3 --no-buffer --netrc-optional --raw --path-as-is --location-trusted
        --retry-connrefused --retry-all-errors --help --version --ssl-reqd --parallel --no-keepalive --next
        --remote-name-all
        """
    ),
    long_valued=names_in(
        """
        --header --request --user-agent --max-time --retry --referer --user --cookie --connect-timeout --write-out
        --proxy --resolve --retry-delay --retry-max-time --interface --max-redirs --range --url --limit-rate
        --max-filesize --data --data-raw --data-binary --data-urlencode --json --form --form-string --upload-file
        --output --output-dir --cookie-jar --dump-header --config --cert --key --cacert --netrc-file --trace
        --trace-ascii --stderr --oauth2-bearer --unix-socket --proto --proto-redir --dns-servers --connect-to
        --noproxy --quote --mail-from --mail-rcpt
        """
    ),
)
_SENT = names_in("-d --data --data-binary --json --data-urlencode -F --form -H --header -w --write-out")
_SENT_FILE = names_in("-T --upload-file")
_COOKIES = names_in("-b --cookie")
_ADDRESSES = names_in("--url -x --proxy --connect-to --resolve")
"""Where the request goes, besides its own address."""
_STORED = frozenset(
    {"-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr"}
)
_AT_FILE = re.compile(r"(?:^|=|;)[@<]([^;]+)")
_NAMED_AT_FILE = re.compile(r"[^=@]*@(.+)")
"""`name@file`, in which no `=` comes first."""
_WEB = re.compile(r"(?i)(?:https?|wss?)://|[\w.$-]+(?:[:/?]|\Z)|\[|\{")
_SCHEME = re.compile(r"(?i)([a-z][a-z0-9+.-]*)://")


def _request(look: Look, word: Word) -> None:
    scheme = _SCHEME.match(word.text)
    called = scheme[1].lower() if scheme else "http"
    if called == "file":
        look.file(EffectKind.READ, word._replace(text="/" + word.text[7:].lstrip("/")))
        look.report.unclear("`file:` is no address of another machine")
    elif called in ("http", "https", "ftp", "ftps", "ws", "wss", "sftp", "scp"):
        look.report.effect(EffectKind.NETWORK, word.text)
    else:
        look.report.effect(EffectKind.NETWORK, word.text)
        look.report.unclear(f"`{called}:` is not a known way to fetch something")


def _curl(look: Look, call: Call) -> None:
    found = parsed(_CURL, call.arguments)
    if found.strange:
        look.report.unclear(f"`{found.strange[:64]}` is not a known option of `{call.name}`")
    for option, value in found.options:
        if value is not None:
            _curl_option(look, option, value)
    for word in found.operands:
        _request(look, word)
    if found.has("-O", "--remote-name", "-J", "--remote-name-all"):
        places = [value for option, value in found.options if option == "--output-dir" and value is not None]
        look.file(EffectKind.WRITE, places[-1] if places else Word("."))
    if not found.operands and not found.has("--url", "--help", "--version"):
        look.report.unclear(f"`{call.name}` without an address is not known")


def _curl_option(look: Look, option: str, value: Word) -> None:
    for sent in _sent_files(option, value.text):
        look.file(EffectKind.READ, value._replace(text=sent))
    if option in _STORED:
        look.file(EffectKind.WRITE, value)
    elif option in _ADDRESSES:
        _request(look, value)
    elif option in ("-K", "--config"):
        look.file(EffectKind.READ, value)
        look.report.unclear("`curl -K` takes its orders from a file")
    elif option in ("-Q", "--quote", "--unix-socket"):
        look.report.unclear(f"`curl {option}` speaks to a server in its own words")


def _sent_files(option: str, value: str) -> list[str]:
    """The files whose content an option puts into the request."""
    if option in _SENT_FILE or (option in _COOKIES and "=" not in value):
        return [value]
    if option == "--data-urlencode" and (named := _NAMED_AT_FILE.match(value)):
        return [named[1]]
    return _AT_FILE.findall(value) if option in _SENT | _COOKIES else []


_WGET_READS = names_in("--post-file --body-file -i --input-file --load-cookies")
_WGET_RUNS = names_in("-e --execute --use-askpass --config")
_WGET_VALUED = names_in("-U -t -T -w -l -A -R -D --header --user-agent --tries --timeout")
_WGET_STORES = re.compile(r"-[a-zA-Z]*O(.*)\Z|--output-document|-[a-z]*P(.*)\Z|--directory-prefix|-[ao]\Z")
_WGET_KEEPS = ("-o", "-a", "--output-file", "--append-output", "--save-cookies", "--warc-file", "--hsts-file")
"""Options whose file is no page it fetched."""


def _wget(look: Look, call: Call) -> None:
    _fetched(look, call)
    for word in values_of(call.arguments, _WGET_KEEPS):
        look.file(EffectKind.WRITE, word)


def _fetched(look: Look, call: Call) -> None:
    rest = iter(call.arguments)
    kept = "--spider" not in call.texts
    for word in rest:
        option, given, value = word.text.partition("=")
        stores = _WGET_STORES.match(word.text)
        if option in _WGET_READS:
            look.file(EffectKind.READ, word._replace(text=value) if given else next(rest, Word("")))
            look.report.unclear(f"`{call.name} {option}` reads a file")
        elif option in _WGET_RUNS:
            look.report.violate(Violation.ESCAPE)
        elif stores:
            kept = False
            attached = value or stores[1] or stores[2] or ""
            look.file(EffectKind.WRITE, word._replace(text=attached) if attached else next(rest, Word("")))
        elif word.text in _WGET_VALUED:
            next(rest, None)
        elif not word.is_option:
            _request(look, word)
    if kept:
        look.file(EffectKind.WRITE, Word("."))


def _netcat(look: Look, call: Call) -> None:
    look.report.effect(EffectKind.NETWORK, joined(call.arguments))
    for word in call.arguments:
        executes = word.text in ("--exec", "--sh-exec", "--lua-exec", "-c") or re.match(
            r"--(?:sh-|lua-)?exec", word.text
        )
        if executes or re.fullmatch(r"-[a-zA-Z]*[ec][a-zA-Z]*", word.text):
            look.report.violate(Violation.REVERSE_SHELL)
        if word.is_option and not word.text.startswith("--") and "l" in word.text:
            look.report.effect(EffectKind.ADMIN, call.line)


def _socat(look: Look, call: Call) -> None:
    look.report.effect(EffectKind.NETWORK, joined(call.arguments))
    for word in call.arguments:
        if re.match(r"(?i)(?:exec|system|shell|pty):", word.text):
            look.report.violate(Violation.REVERSE_SHELL)
        if match := re.match(r"(?i)(?:open|file|create|gopen):([^,]*)", word.text):
            look.file(EffectKind.WRITE, word._replace(text=match[1]))


def _mail(look: Look, call: Call) -> None:
    target = next((word.text for word in call.arguments if "@" in word.text), call.name)
    look.report.effect(EffectKind.COMMUNICATE, target)
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("-a", "-A", "--attach", "-E"):
            look.file(EffectKind.READ, next(rest, Word("")))
        elif re.match(r"--exec|-E|-S|-X|-C|-oQ|-be", word.text):
            look.report.violate(Violation.ESCAPE)


def _speaks(look: Look, call: Call) -> None:
    hosts = [word for word in call.arguments if not word.is_option]
    look.report.effect(EffectKind.NETWORK, hosts[-1].text if hosts else call.name)


def _logs_in(look: Look, call: Call) -> None:
    """ftp, telnet and their kin read orders, and can start a shell with `!`."""
    _speaks(look, call)
    look.report.effect(EffectKind.EXECUTE, call.name)
    if call.name == "lftp" and any(word.text in ("-c", "-e", "-f") for word in call.arguments):
        look.report.violate(Violation.ESCAPE)
    if call.fed.source is not Source.NOTHING and (call.fed.source is not Source.TEXT or "!" in call.fed.text):
        look.report.violate(call.fed.violation)


def _scans(look: Look, call: Call) -> None:
    _speaks(look, call)
    look.report.effect(EffectKind.EXECUTE, call.line)
    if any(word.text.startswith(("--script", "--interactive", "-iL", "-oN", "--datadir")) for word in call.arguments):
        look.report.violate(Violation.ESCAPE)


def _looks_up(look: Look, call: Call) -> None:
    rest = iter(call.arguments)
    hosts: list[str] = []
    for word in rest:
        if word.text in ("-f", "-k") and call.name in ("dig", "host", "arp", "fping", "ip"):
            look.file(EffectKind.READ, next(rest, Word("")))
        elif word.text in ("-c", "-w", "-W", "-i", "-s", "-t", "-p", "-m", "-q", "-I", "-b", "-x"):
            next(rest, None)
        elif not word.is_option:
            hosts.append(word.text)
    if hosts:
        look.report.effect(EffectKind.NETWORK, hosts[0])
    elif call.name not in ("ip", "ifconfig"):
        look.report.effect(EffectKind.NETWORK, call.name)


_IP_CHANGES = names_in("add del delete set flush change replace append exec up down link-netns")
_SHORT_CHANGES = {"arp": {"-s", "-d", "-f"}, "ss": {"-K", "--kill"}}


def _ip(look: Look, call: Call) -> None:
    words = {word.text for word in call.arguments}
    changes = words & _IP_CHANGES or words & {"-b", "-batch"} or words & _SHORT_CHANGES.get(call.name, set())
    if changes or (
        call.name in ("ifconfig", "route", "nmcli") and len([w for w in call.arguments if not w.is_option]) > 1
    ):
        look.report.effect(EffectKind.ADMIN, call.line)
    if "exec" in words:
        look.report.violate(Violation.ESCAPE)
    if call.name == "ss":
        for word in values_of(call.arguments, ("-D", "--diag")):
            look.file(EffectKind.WRITE, word)
        for word in values_of(call.arguments, ("-F", "--filter")):
            look.file(EffectKind.READ, word)


RULES: dict[str, Rule] = {
    "curl": _curl,
    **dict.fromkeys(("wget", "wget2"), _wget),
    **dict.fromkeys(("nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "cryptcat", "pwncat"), _netcat),
    "socat": _socat,
    **dict.fromkeys(
        ("mail", "mailx", "sendmail", "mutt", "msmtp", "swaks", "ssmtp", "s-nail", "notify-send", "wall", "write"),
        _mail,
    ),
    **dict.fromkeys(("ftp", "lftp", "tftp", "sftp", "telnet", "rlogin", "smbclient", "ncftp", "rpcclient"), _logs_in),
    **dict.fromkeys(("nmap", "masscan", "zmap", "hping3"), _scans),
    **dict.fromkeys(
        (
            "ping",
            "ping6",
            "nslookup",
            "dig",
            "host",
            "whois",
            "traceroute",
            "tracepath",
            "mtr",
            "fping",
            "arping",
            "resolvectl",
            "getent_",
        ),
        _looks_up,
    ),
    **dict.fromkeys(
        (
            "aria2c",
            "axel",
            "http",
            "https",
            "httpie",
            "xh",
            "lynx",
            "links",
            "w3m",
            "elinks",
            "youtube-dl",
            "yt-dlp",
            "rclone",
            "gsutil",
            "s3cmd",
            "mc",
            "wscat",
            "grpcurl",
            "ssh-keyscan",
            "ssh-copy-id",
            "speedtest",
            "speedtest-cli",
            "xdg-open",
            "open",
            "iperf",
            "iperf3",
        ),
        _scans,
    ),
    **dict.fromkeys(("ip", "ifconfig", "route", "nmcli", "netstat", "ss", "arp"), _ip),
}
