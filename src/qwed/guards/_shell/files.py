"""Programs that pack, unpack, convert and copy files: archives, dd, xxd, openssl, gpg."""

import re

from qwed.guards._shell.model import Call, Look, Violation, Word, joined, names_in
from qwed.guards._shell.options import Program, Rule, attached_files, below, parsed
from qwed.words import EffectKind

_TAR_RUNS = names_in(
    """
    -I -F --use-compress-program --to-command --checkpoint-action --rsh-command --rmt-command --info-script
    --new-volume-script
    """
)
_TAR = Program(
    free=True,
    valued="fCbgKNVLH",
    words=names_in("--list --extract --get --create --append --update --diff --checkpoint --version --help"),
    long_valued=names_in(
        """
        --exclude --strip-components --transform --xform --owner --group --mode --mtime --format --label --newer --sort
        --wildcards-match-slash --blocking-factor --record-size --starting-file --suffix
        """
    ),
    reads=names_in("-T -X --files-from --exclude-from --directory --file"),
    writes=names_in("--index-file --listed-incremental"),
    runs=_TAR_RUNS,
    acts=names_in("--one-top-level --remove-files --absolute-names"),
)
_COMPRESSORS = re.compile(r"(?:p?bzip2|gzip|pigz|p?ixz|xz|zstd|zstdmt|lz4|lzip|lzop|brotli)(?: -[\w=-]+)*")
_TAR_VERBS = {"--list": "t", "--extract": "x", "--get": "x", "--create": "c", "--append": "r", "--update": "u"}
_TAR_LETTERS = {**{f"-{letter}": letter for letter in "ctxru"}, **_TAR_VERBS, "--diff": "t", "-d": "t"}


def _tar(look: Look, call: Call) -> None:
    found = parsed(_TAR, _dashed(call.arguments))
    values = {option: value for option, value in found.options if value is not None}
    for option, value in found.options:
        if option in _TAR_RUNS and not (option in _TAR_PACKS and value and _COMPRESSORS.fullmatch(value.text)):
            look.report.violate(Violation.ESCAPE)
            look.report.effect(EffectKind.EXECUTE, call.line)
        elif option in _TAR_TOUCHES and value is not None:
            look.file(_TAR_TOUCHES[option], value)
    verb = next((_TAR_LETTERS[option] for option, _ in found.options if option in _TAR_LETTERS), "")
    archive = values.get("-f") or values.get("--file")
    place = values.get("-C") or values.get("--directory") or Word(".")
    if verb in ("c", "r", "u"):
        _pack(look, [archive or Word("-"), *found.operands], found.has("--remove-files"), place)
    elif verb in ("t", "x"):
        _unpack(look, call.name, archive, place if verb == "x" else None, found.has("-P", "--absolute-names"))
    elif not found.has("--version", "--help"):
        look.report.unclear(f"what `{call.name}` does here is not known")


_TAR_PACKS = frozenset({"-I", "--use-compress-program"})
_TAR_TOUCHES = {
    **dict.fromkeys(("-T", "-X", "--files-from", "--exclude-from"), EffectKind.READ),
    **dict.fromkeys(("-g", "--index-file", "--listed-incremental", "--one-top-level"), EffectKind.WRITE),
}


def _dashed(words: list[Word]) -> list[Word]:
    """`tar xfC a.tar there` as `tar -x -f a.tar -C there`: the old way of giving options."""
    if not words or not re.fullmatch(r"[A-Za-z]+", words[0].text):
        return words
    rest = iter(words[1:])
    told: list[Word] = []
    for letter in words[0].text:
        told.append(Word(f"-{letter}"))
        if letter in _TAR.valued or f"-{letter}" in _TAR.reads | _TAR.runs:
            told += [value for value in (next(rest, None),) if value is not None]
    return [*told, *rest]


def _pack(look: Look, files: list[Word], removes: bool, place: Word | None = None) -> None:
    for at, word in enumerate(files):
        inside = word if not at or place is None else below(place, word)
        look.file(EffectKind.READ if at else EffectKind.WRITE, inside)
        if at:
            look.tree(inside)
        if removes and at:
            look.file(EffectKind.DELETE, inside)


def _unpack(look: Look, name: str, archive: Word | None, place: Word | None, anywhere: bool = False) -> None:
    if archive is not None:
        look.file(EffectKind.READ, archive)
    if place is not None:
        look.file(EffectKind.WRITE, place)
    if anywhere:
        look.report.unclear(f"`{name}` may write outside its directory")


_ZIP = Program(
    free=True,
    valued="nti",
    reads=frozenset({"-@", "-x"}),
    writes=names_in("-b -O --output-file --out --temp-path --logfile-path"),
    runs=names_in("-T --test --unzip-command"),
)


def _zip(look: Look, call: Call) -> None:
    found = parsed(_ZIP, call.arguments)
    if found.has("-T", "--test", "--unzip-command"):
        look.report.violate(Violation.ESCAPE)
    for word in attached_files(call.arguments):
        look.file(EffectKind.WRITE, word)
    for option, value in found.options:
        if option in _ZIP.writes and value is not None:
            look.file(EffectKind.WRITE, value)
    _pack(look, call.operands, found.has("-m", "--move"))


_UNZIP = Program(free=True, valued="xP", writes=frozenset({"-d"}))
_UNZIP_LISTS = ("-l", "-v", "-t", "-Z", "-p", "-c", "-z")


def _unzip(look: Look, call: Call) -> None:
    found = parsed(_UNZIP, call.arguments)
    place = next((value for option, value in found.options if option == "-d" and value is not None), Word("."))
    lists = found.has(*_UNZIP_LISTS) or call.name == "zipinfo"
    _unpack(look, call.name, found.operands[0] if found.operands else None, None if lists else place)


_SEVEN_LISTS = frozenset({"l", "t", "i", "v", "lb", "vb", "lt", "h", "b"})
_SEVEN_EXTRACTS = frozenset({"x", "e"})


def _seven_zip(look: Look, call: Call) -> None:
    """`7z` and `rar` have a verb, and the place to write to stands right behind `-o` or last with a slash."""
    verb = call.operands[0].text if call.operands else ""
    archive = call.operands[1] if len(call.operands) > 1 else None
    if verb in _SEVEN_LISTS:
        _unpack(look, call.name, archive, None)
    elif verb in _SEVEN_EXTRACTS:
        _unpack(look, call.name, archive, Word("."))
        for word in [*attached_files(call.arguments), *(each for each in call.operands[2:] if "/" in each.text)]:
            look.file(EffectKind.WRITE, word)
    elif verb:
        _pack(look, call.operands[1:], any(text.startswith(("-sdel", "-df")) for text in call.texts))


_COMPRESS = Program(
    free=True,
    valued="ST",
    reads=names_in("-D --filelist --files --files0 --patch-from"),
    writes=names_in("-o --output --output-dir-flat --output-dir-mirror"),
)


def _compress(look: Look, call: Call) -> None:
    """The file is replaced by its other form, unless it is only listed, tested or printed."""
    found = parsed(_COMPRESS, call.arguments)
    only = found.has("-c", "-l", "-t", "--stdout", "--list", "--test", "--to-stdout")
    for word in found.operands:
        look.file(EffectKind.READ if only else EffectKind.WRITE, word)
    for option, value in found.options:
        if option in _COMPRESS.reads | _COMPRESS.writes and value is not None:
            look.file(EffectKind.READ if option in _COMPRESS.reads else EffectKind.WRITE, value)


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
    **dict.fromkeys(("unzip", "zipinfo"), _unzip),
    **dict.fromkeys(("7z", "7za", "7zz", "7zr", "unrar", "rar"), _seven_zip),
    **dict.fromkeys(
        ("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lz4", "compress", "uncompress", "pigz"),
        _compress,
    ),
    "dd": _dd,
    "xxd": _xxd,
    "openssl": _openssl,
    **dict.fromkeys(("gpg", "gpg2", "age", "sops", "pass", "ansible-vault"), _gpg),
}
