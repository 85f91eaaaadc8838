"""Rules for programs that communicate with other machines: what they fetch, send, store and run."""

import re

from qwed.guards._shell.command_model import (
    CommandCall,
    DataSource,
    ShellAnalysis,
    Violation,
    Word,
    join_words,
    names_in,
)
from qwed.guards._shell.options import ProgramSpec, Rule, parse_options, values_of
from qwed.model import EffectKind

_CURL = ProgramSpec(
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
"""Options that give addresses besides the URL of the request."""
_STORED = frozenset(
    {"-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header", "--trace", "--trace-ascii", "--stderr"}
)
_AT_FILE = re.compile(r"(?:^|=|;)[@<]([^;]+)")
_NAMED_AT_FILE = re.compile(r"[^=@]*@(.+)")
"""`name@file` without a `=` before the `@`."""
_WEB = re.compile(r"(?i)(?:https?|wss?)://|[\w.$-]+(?:[:/?]|\Z)|\[|\{")
_SCHEME = re.compile(r"(?i)([a-z][a-z0-9+.-]*)://")


def _request(analysis: ShellAnalysis, word: Word) -> None:
    scheme = _SCHEME.match(word.text)
    scheme_name = scheme[1].lower() if scheme else "http"
    if scheme_name == "file":
        analysis.add_file_effect(EffectKind.READ, word._replace(text="/" + word.text[7:].lstrip("/")))
        analysis.report.add_unresolved("`file:` is not an address of another machine")
    elif scheme_name in ("http", "https", "ftp", "ftps", "ws", "wss", "sftp", "scp"):
        analysis.report.add_effect(EffectKind.NETWORK, word.text)
    else:
        analysis.report.add_effect(EffectKind.NETWORK, word.text)
        analysis.report.add_unresolved(f"`{scheme_name}:` is not a known URL scheme")


def _curl(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = parse_options(_CURL, call.arguments)
    if options.unknown_option:
        analysis.report.add_unresolved(f"`{options.unknown_option[:64]}` is not a known option of `{call.name}`")
    for option, value in options.options:
        if value is not None:
            _curl_option(analysis, option, value)
    for word in options.operands:
        _request(analysis, word)
    if options.has("-O", "--remote-name", "-J", "--remote-name-all"):
        directories = [value for option, value in options.options if option == "--output-dir" and value is not None]
        analysis.add_file_effect(EffectKind.WRITE, directories[-1] if directories else Word("."))
    if not options.operands and not options.has("--url", "--help", "--version"):
        analysis.report.add_unresolved(f"`{call.name}` without an address is not known")


def _curl_option(analysis: ShellAnalysis, option: str, value: Word) -> None:
    for sent in _sent_files(option, value.text):
        analysis.add_file_effect(EffectKind.READ, value._replace(text=sent))
    if option in _STORED:
        analysis.add_file_effect(EffectKind.WRITE, value)
    elif option in _ADDRESSES:
        _request(analysis, value)
    elif option in ("-K", "--config"):
        analysis.add_file_effect(EffectKind.READ, value)
        analysis.report.add_unresolved("`curl -K` reads its options from a file")
    elif option in ("-Q", "--quote", "--unix-socket"):
        analysis.report.add_unresolved(f"`curl {option}` sends arbitrary commands to a server")


def _sent_files(option: str, value: str) -> list[str]:
    """Return the files whose content an option puts into the request."""
    if option in _SENT_FILE or (option in _COOKIES and "=" not in value):
        return [value]
    if option == "--data-urlencode" and (match := _NAMED_AT_FILE.match(value)):
        return [match[1]]
    return _AT_FILE.findall(value) if option in _SENT | _COOKIES else []


_WGET_READS = names_in("--post-file --body-file -i --input-file --load-cookies")
_WGET_RUNS = names_in("-e --execute --use-askpass --config")
_WGET_VALUED = names_in("-U -t -T -w -l -A -R -D --header --user-agent --tries --timeout")
_WGET_STORES = re.compile(r"-[a-zA-Z]*O(.*)\Z|--output-document|-[a-z]*P(.*)\Z|--directory-prefix|-[ao]\Z")
_WGET_LOGS = ("-o", "-a", "--output-file", "--append-output", "--save-cookies", "--warc-file", "--hsts-file")
"""Options that write a file other than the downloaded page."""


def _wget(analysis: ShellAnalysis, call: CommandCall) -> None:
    _download(analysis, call)
    for word in values_of(call.arguments, _WGET_LOGS):
        analysis.add_file_effect(EffectKind.WRITE, word)


def _download(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = iter(call.arguments)
    writes_here = "--spider" not in call.texts
    for word in rest:
        option, has_value, value = word.text.partition("=")
        stores = _WGET_STORES.match(word.text)
        if option in _WGET_READS:
            analysis.add_file_effect(EffectKind.READ, word._replace(text=value) if has_value else next(rest, Word("")))
            analysis.report.add_unresolved(f"`{call.name} {option}` reads a file")
        elif option in _WGET_RUNS:
            analysis.report.add_violation(Violation.ESCAPE)
        elif stores:
            writes_here = False
            attached = value or stores[1] or stores[2] or ""
            analysis.add_file_effect(
                EffectKind.WRITE, word._replace(text=attached) if attached else next(rest, Word(""))
            )
        elif word.text in _WGET_VALUED:
            next(rest, None)
        elif not word.is_option:
            _request(analysis, word)
    if writes_here:
        analysis.add_file_effect(EffectKind.WRITE, Word("."))


def _netcat(analysis: ShellAnalysis, call: CommandCall) -> None:
    analysis.report.add_effect(EffectKind.NETWORK, join_words(call.arguments))
    for word in call.arguments:
        executes = word.text in ("--exec", "--sh-exec", "--lua-exec", "-c") or re.match(
            r"--(?:sh-|lua-)?exec", word.text
        )
        if executes or re.fullmatch(r"-[a-zA-Z]*[ec][a-zA-Z]*", word.text):
            analysis.report.add_violation(Violation.REVERSE_SHELL)
        if word.is_option and not word.text.startswith("--") and "l" in word.text:
            analysis.report.add_effect(EffectKind.ADMIN, call.line)


def _socat(analysis: ShellAnalysis, call: CommandCall) -> None:
    analysis.report.add_effect(EffectKind.NETWORK, join_words(call.arguments))
    for word in call.arguments:
        if re.match(r"(?i)(?:exec|system|shell|pty):", word.text):
            analysis.report.add_violation(Violation.REVERSE_SHELL)
        if match := re.match(r"(?i)(?:open|file|create|gopen):([^,]*)", word.text):
            analysis.add_file_effect(EffectKind.WRITE, word._replace(text=match[1]))


def _mail(analysis: ShellAnalysis, call: CommandCall) -> None:
    target = next((word.text for word in call.arguments if "@" in word.text), call.name)
    analysis.report.add_effect(EffectKind.COMMUNICATE, target)
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("-a", "-A", "--attach", "-E"):
            analysis.add_file_effect(EffectKind.READ, next(rest, Word("")))
        elif re.match(r"--exec|-E|-S|-X|-C|-oQ|-be", word.text):
            analysis.report.add_violation(Violation.ESCAPE)


def _connect(analysis: ShellAnalysis, call: CommandCall) -> None:
    hosts = [word for word in call.arguments if not word.is_option]
    analysis.report.add_effect(EffectKind.NETWORK, hosts[-1].text if hosts else call.name)


def _interactive_client(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse ftp, telnet and similar clients, which read commands and can start a shell with `!`."""
    _connect(analysis, call)
    analysis.report.add_effect(EffectKind.EXECUTE, call.name)
    if call.name == "lftp" and any(word.text in ("-c", "-e", "-f") for word in call.arguments):
        analysis.report.add_violation(Violation.ESCAPE)
    if call.stdin.source is not DataSource.NOTHING and (
        call.stdin.source is not DataSource.TEXT or "!" in call.stdin.text
    ):
        analysis.report.add_violation(call.stdin.violation)


def _port_scan(analysis: ShellAnalysis, call: CommandCall) -> None:
    _connect(analysis, call)
    analysis.report.add_effect(EffectKind.EXECUTE, call.line)
    if any(word.text.startswith(("--script", "--interactive", "-iL", "-oN", "--datadir")) for word in call.arguments):
        analysis.report.add_violation(Violation.ESCAPE)


def _host_lookup(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = iter(call.arguments)
    hosts: list[str] = []
    for word in rest:
        if word.text in ("-f", "-k") and call.name in ("dig", "host", "arp", "fping", "ip"):
            analysis.add_file_effect(EffectKind.READ, next(rest, Word("")))
        elif word.text in ("-c", "-w", "-W", "-i", "-s", "-t", "-p", "-m", "-q", "-I", "-b", "-x"):
            next(rest, None)
        elif not word.is_option:
            hosts.append(word.text)
    if hosts:
        analysis.report.add_effect(EffectKind.NETWORK, hosts[0])
    elif call.name not in ("ip", "ifconfig"):
        analysis.report.add_effect(EffectKind.NETWORK, call.name)


_IP_CHANGES = names_in("add del delete set flush change replace append exec up down link-netns")
_SHORT_CHANGES = {"arp": {"-s", "-d", "-f"}, "ss": {"-K", "--kill"}}


def _ip(analysis: ShellAnalysis, call: CommandCall) -> None:
    words = {word.text for word in call.arguments}
    changes = words & _IP_CHANGES or words & {"-b", "-batch"} or words & _SHORT_CHANGES.get(call.name, set())
    if changes or (
        call.name in ("ifconfig", "route", "nmcli") and len([w for w in call.arguments if not w.is_option]) > 1
    ):
        analysis.report.add_effect(EffectKind.ADMIN, call.line)
    if "exec" in words:
        analysis.report.add_violation(Violation.ESCAPE)
    if call.name == "ss":
        for word in values_of(call.arguments, ("-D", "--diag")):
            analysis.add_file_effect(EffectKind.WRITE, word)
        for word in values_of(call.arguments, ("-F", "--filter")):
            analysis.add_file_effect(EffectKind.READ, word)


RULES: dict[str, Rule] = {
    "curl": _curl,
    **dict.fromkeys(("wget", "wget2"), _wget),
    **dict.fromkeys(("nc", "ncat", "netcat", "nc.traditional", "nc.openbsd", "cryptcat", "pwncat"), _netcat),
    "socat": _socat,
    **dict.fromkeys(
        ("mail", "mailx", "sendmail", "mutt", "msmtp", "swaks", "ssmtp", "s-nail", "notify-send", "wall", "write"),
        _mail,
    ),
    **dict.fromkeys(
        ("ftp", "lftp", "tftp", "sftp", "telnet", "rlogin", "smbclient", "ncftp", "rpcclient"), _interactive_client
    ),
    **dict.fromkeys(("nmap", "masscan", "zmap", "hping3"), _port_scan),
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
        _host_lookup,
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
        _port_scan,
    ),
    **dict.fromkeys(("ip", "ifconfig", "route", "nmcli", "netstat", "ss", "arp"), _ip),
}
