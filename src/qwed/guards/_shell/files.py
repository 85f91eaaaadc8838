"""Programs that pack, unpack, convert and copy files: archives, dd, xxd, openssl, gpg."""

import re

from qwed.guards._shell.model import Call, Look, Violation, Word, joined, names_in
from qwed.guards._shell.options import Program, Rule, parsed
from qwed.words import EffectKind

_TAR_RUNS = re.compile(
    r"--(?:to-command|checkpoint-action|use-compress-program|rsh-command|rmt-command|info-script|new-volume-script)|-I|-F\Z"
)
_TAR_VALUED = names_in("-C --directory -T -X --exclude --files-from --strip-components")
_TAR_VERBS = {
    "--list": "t",
    "--extract": "x",
    "--get": "x",
    "--create": "c",
    "--append": "r",
    "--update": "u",
    "--diff": "t",
}


def _tar(look: Look, call: Call) -> None:
    if any(_TAR_RUNS.match(text) for text in call.texts):
        look.report.violate(Violation.ESCAPE)
        look.report.effect(EffectKind.EXECUTE, call.line)
    verb = _tar_verb(call.texts)
    files = _tar_operands(call.arguments)
    if verb in ("c", "r", "u"):
        _pack(look, files, "--remove-files" in call.texts)
    elif verb in ("t", "x"):
        for word in files[:1]:
            look.file(EffectKind.READ, word)
        if verb == "x":
            _unpack(look, call)
    elif not {"--version", "--help"} & set(call.texts):
        look.report.unclear(f"what `{call.name}` does here is not known")


def _tar_verb(texts: list[str]) -> str:
    for text in texts:
        if text.partition("=")[0] in _TAR_VERBS:
            return _TAR_VERBS[text.partition("=")[0]]
    letters = "".join(text.lstrip("-") for text in texts[:2] if re.fullmatch(r"-?[A-Za-z]+", text))
    return next((letter for letter in letters if letter in "ctxru"), "")


def _pack(look: Look, files: list[Word], removes: bool) -> None:
    for at, word in enumerate(files):
        look.file(EffectKind.READ if at else EffectKind.WRITE, word)
        if removes and at:
            look.file(EffectKind.DELETE, word)


def _unpack(look: Look, call: Call) -> None:
    texts = call.texts
    place = next((call.arguments[at + 1] for at, text in enumerate(texts[:-1]) if text in ("-C", "--directory")), None)
    look.file(EffectKind.WRITE, place or Word("."))
    if "--absolute-names" in texts or any(re.fullmatch(r"-?[A-Za-z]*P[A-Za-z]*", text) for text in texts[:2]):
        look.report.unclear(f"`{call.name}` may write outside its directory")


def _tar_operands(arguments: list[Word]) -> list[Word]:
    """The archive first, then what goes in or out."""
    found: list[Word] = []
    rest = iter(arguments)
    for at, word in enumerate(rest):
        if word.text in _TAR_VALUED:
            next(rest, None)
        elif word.text.startswith("--file="):
            found.insert(0, word._replace(text=word.text[7:]))
        elif not word.is_option and not (at == 0 and re.fullmatch(r"[A-Za-z]+", word.text)):
            found.append(word)
    return found


def _zip(look: Look, call: Call) -> None:
    if any(text.startswith(("-T", "--unzip-command", "--test")) for text in call.texts):
        look.report.violate(Violation.ESCAPE)
    _pack(look, call.operands, bool({"-m", "--move"} & set(call.texts)))


def _unzip(look: Look, call: Call) -> None:
    options = "".join(word.text for word in call.arguments if word.is_option)
    files = call.operands
    listing = any(letter in options for letter in "lvtZpc") or call.name == "zipinfo"
    if call.name in ("7z", "7za", "unrar") and files:
        listing |= files[0].text in ("l", "t", "i", "v", "lb")
        files = files[1:]
    for word in files[:1]:
        look.file(EffectKind.READ, word)
    if not listing:
        place = next((call.arguments[at + 1] for at, text in enumerate(call.texts[:-1]) if text == "-d"), Word("."))
        look.file(EffectKind.WRITE, place)


_COMPRESS = Program(free=True, valued="STo")


def _compress(look: Look, call: Call) -> None:
    """The file is replaced by its other form, unless it is only listed, tested or printed."""
    found = parsed(_COMPRESS, call.arguments)
    only = found.has("-c", "-l", "-t", "--stdout", "--list", "--test", "--to-stdout")
    for word in found.operands:
        look.file(EffectKind.READ if only else EffectKind.WRITE, word)
    for option, value in found.options:
        if option in ("-o", "--output") and value is not None:
            look.file(EffectKind.WRITE, value)


_ENDLESS = frozenset({"if=/dev/zero", "if=/dev/urandom", "if=/dev/random"})


def _dd(look: Look, call: Call) -> None:
    for word in call.arguments:
        key, _, value = word.text.partition("=")
        if key == "if":
            look.file(EffectKind.READ, word._replace(text=value))
        elif key == "of":
            look.file(EffectKind.WRITE, word._replace(text=value))
            if value.startswith("/dev/") and value not in ("/dev/null", "/dev/stdout"):
                look.report.effect(EffectKind.ADMIN, call.line)
    if not all(word.settled for word in call.arguments):
        look.report.unclear("what `dd` copies is decided while it runs")
    if _ENDLESS & set(call.texts) and not any(text.startswith("count=") for text in call.texts):
        look.report.unclear("`dd` copies without end")


_XXD_VALUED = names_in("-l -c -s -g -o -len -cols -seek -n")


def _xxd(look: Look, call: Call) -> None:
    files: list[Word] = []
    rest = iter(call.arguments)
    for word in rest:
        if word.text in _XXD_VALUED:
            next(rest, None)
        elif not word.is_option:
            files.append(word)
    for at, word in enumerate(files):
        look.file(EffectKind.WRITE if at else EffectKind.READ, word)


_OPENSSL_READS = names_in("-in -inkey -key -CAfile -cert -signature -verify -config -kfile -pass_file")
_OPENSSL_WRITES = names_in("-out -keyout -writerand")
_OPENSSL_NETWORK = names_in("s_client s_server s_time ocsp")
_OPENSSL_KEYS = names_in("req ca genrsa genpkey ecparam rsa pkcs12 engine smime cms")


def _openssl(look: Look, call: Call) -> None:
    verb = call.texts[0] if call.arguments else ""
    rest = iter(call.arguments[1:])
    for word in rest:
        if word.text in _OPENSSL_READS:
            look.file(EffectKind.READ, next(rest, Word("")))
        elif word.text in _OPENSSL_WRITES:
            look.file(EffectKind.WRITE, next(rest, Word("")))
        elif word.text == "-engine":
            look.report.violate(Violation.ESCAPE)
        elif verb in ("dgst", "md5", "sha1", "sha256", "sha512") and not word.is_option:
            look.file(EffectKind.READ, word)
    if verb in _OPENSSL_NETWORK:
        look.report.effect(EffectKind.NETWORK, joined(call.arguments))
    elif verb in _OPENSSL_KEYS:
        look.report.effect(EffectKind.SECRET, f"openssl {verb}")


_GPG_LISTS = names_in("--list-keys -k --verify --fingerprint --version --help")


def _gpg(look: Look, call: Call) -> None:
    if not _GPG_LISTS & set(call.texts):
        look.report.effect(EffectKind.SECRET, call.line)
    for word in call.operands:
        look.file(EffectKind.READ, word)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _tar),
    "zip": _zip,
    **dict.fromkeys(("unzip", "zipinfo", "7z", "7za", "unrar"), _unzip),
    **dict.fromkeys(
        ("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lz4", "compress", "uncompress", "pigz"),
        _compress,
    ),
    "dd": _dd,
    "xxd": _xxd,
    "openssl": _openssl,
    **dict.fromkeys(("gpg", "gpg2", "age", "sops", "pass", "ansible-vault"), _gpg),
}
