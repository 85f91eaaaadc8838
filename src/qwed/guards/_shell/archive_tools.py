"""Rules for programs that pack, unpack, convert and copy files: archives, dd, xxd, openssl, gpg."""

import re

from qwed.guards._shell.command_model import CommandCall, ShellAnalysis, Violation, Word, join_words, names_in
from qwed.guards._shell.options import ProgramSpec, Rule, attached_files, join_path, parse_options
from qwed.model import EffectKind

_TAR_RUNS = names_in(
    """
    -I -F --use-compress-program --to-command --checkpoint-action --rsh-command --rmt-command --info-script
    --new-volume-script
    """
)
_TAR = ProgramSpec(
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


def _tar(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = parse_options(_TAR, _with_dashes(call.arguments))
    values = {option: value for option, value in options.options if value is not None}
    for option, value in options.options:
        if option in _TAR_RUNS and not (option in _TAR_PACKS and value and _COMPRESSORS.fullmatch(value.text)):
            analysis.report.add_violation(Violation.ESCAPE)
            analysis.report.add_effect(EffectKind.EXECUTE, call.line)
        elif option in _TAR_TOUCHES and value is not None:
            analysis.add_file_effect(_TAR_TOUCHES[option], value)
    verb = next((_TAR_LETTERS[option] for option, _ in options.options if option in _TAR_LETTERS), "")
    archive = values.get("-f") or values.get("--file")
    directory = values.get("-C") or values.get("--directory") or Word(".")
    if verb in ("c", "r", "u"):
        _pack(analysis, [archive or Word("-"), *options.operands], options.has("--remove-files"), directory)
    elif verb in ("t", "x"):
        _unpack(analysis, call.name, archive, directory if verb == "x" else None, options.has("-P", "--absolute-names"))
    elif not options.has("--version", "--help"):
        analysis.report.add_unresolved(f"the effect of `{call.name}` is not known")


_TAR_PACKS = frozenset({"-I", "--use-compress-program"})
_TAR_TOUCHES = {
    **dict.fromkeys(("-T", "-X", "--files-from", "--exclude-from"), EffectKind.READ),
    **dict.fromkeys(("-g", "--index-file", "--listed-incremental", "--one-top-level"), EffectKind.WRITE),
}


def _with_dashes(words: list[Word]) -> list[Word]:
    """Convert traditional tar options to dashed ones: `tar xfC a.tar there` becomes `tar -x -f a.tar -C there`."""
    if not words or not re.fullmatch(r"[A-Za-z]+", words[0].text):
        return words
    rest = iter(words[1:])
    dashed: list[Word] = []
    for letter in words[0].text:
        dashed.append(Word(f"-{letter}"))
        if letter in _TAR.valued or f"-{letter}" in _TAR.reads | _TAR.runs:
            dashed += [value for value in (next(rest, None),) if value is not None]
    return [*dashed, *rest]


def _pack(analysis: ShellAnalysis, files: list[Word], removes: bool, directory: Word | None = None) -> None:
    for index, word in enumerate(files):
        inside = word if not index or directory is None else join_path(directory, word)
        analysis.add_file_effect(EffectKind.READ if index else EffectKind.WRITE, inside)
        if index:
            analysis.add_tree_read(inside)
        if removes and index:
            analysis.add_file_effect(EffectKind.DELETE, inside)


def _unpack(
    analysis: ShellAnalysis, name: str, archive: Word | None, directory: Word | None, anywhere: bool = False
) -> None:
    if archive is not None:
        analysis.add_file_effect(EffectKind.READ, archive)
    if directory is not None:
        analysis.add_file_effect(EffectKind.WRITE, directory)
    if anywhere:
        analysis.report.add_unresolved(f"`{name}` may write outside its directory")


_ZIP = ProgramSpec(
    free=True,
    valued="nti",
    reads=frozenset({"-@", "-x"}),
    writes=names_in("-b -O --output-file --out --temp-path --logfile-path"),
    runs=names_in("-T --test --unzip-command"),
)


def _zip(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = parse_options(_ZIP, call.arguments)
    if options.has("-T", "--test", "--unzip-command"):
        analysis.report.add_violation(Violation.ESCAPE)
    for word in attached_files(call.arguments):
        analysis.add_file_effect(EffectKind.WRITE, word)
    for option, value in options.options:
        if option in _ZIP.writes and value is not None:
            analysis.add_file_effect(EffectKind.WRITE, value)
    _pack(analysis, call.operands, options.has("-m", "--move"))


_UNZIP = ProgramSpec(free=True, valued="xP", writes=frozenset({"-d"}))
_UNZIP_LISTS = ("-l", "-v", "-t", "-Z", "-p", "-c", "-z")


def _unzip(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = parse_options(_UNZIP, call.arguments)
    directory = next((value for option, value in options.options if option == "-d" and value is not None), Word("."))
    lists = options.has(*_UNZIP_LISTS) or call.name == "zipinfo"
    _unpack(analysis, call.name, options.operands[0] if options.operands else None, None if lists else directory)


_SEVEN_LISTS = frozenset({"l", "t", "i", "v", "lb", "vb", "lt", "h", "b"})
_SEVEN_EXTRACTS = frozenset({"x", "e"})


def _seven_zip(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse `7z` and `rar`, which have a verb and take the target directory right after `-o` or last with a slash."""
    verb = call.operands[0].text if call.operands else ""
    archive = call.operands[1] if len(call.operands) > 1 else None
    if verb in _SEVEN_LISTS:
        _unpack(analysis, call.name, archive, None)
    elif verb in _SEVEN_EXTRACTS:
        _unpack(analysis, call.name, archive, Word("."))
        for word in [
            *attached_files(call.arguments),
            *(operand for operand in call.operands[2:] if "/" in operand.text),
        ]:
            analysis.add_file_effect(EffectKind.WRITE, word)
    elif verb:
        _pack(analysis, call.operands[1:], any(text.startswith(("-sdel", "-df")) for text in call.texts))


_COMPRESS = ProgramSpec(
    free=True,
    valued="ST",
    reads=names_in("-D --filelist --files --files0 --patch-from"),
    writes=names_in("-o --output --output-dir-flat --output-dir-mirror"),
)


def _compress(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report the file as replaced by its converted form, unless it is only listed, tested or printed."""
    options = parse_options(_COMPRESS, call.arguments)
    read_only = options.has("-c", "-l", "-t", "--stdout", "--list", "--test", "--to-stdout")
    for word in options.operands:
        analysis.add_file_effect(EffectKind.READ if read_only else EffectKind.WRITE, word)
    for option, value in options.options:
        if option in _COMPRESS.reads | _COMPRESS.writes and value is not None:
            analysis.add_file_effect(EffectKind.READ if option in _COMPRESS.reads else EffectKind.WRITE, value)


_ENDLESS = frozenset({"if=/dev/zero", "if=/dev/urandom", "if=/dev/random"})


def _dd(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in call.arguments:
        key, _, value = word.text.partition("=")
        if key == "if":
            analysis.add_file_effect(EffectKind.READ, word._replace(text=value))
        elif key == "of":
            analysis.add_file_effect(EffectKind.WRITE, word._replace(text=value))
            if value.startswith("/dev/") and value not in ("/dev/null", "/dev/stdout"):
                analysis.report.add_effect(EffectKind.ADMIN, call.line)
    if not all(word.is_resolved for word in call.arguments):
        analysis.report.add_unresolved("the files that `dd` copies are known only at run time")
    if _ENDLESS & set(call.texts) and not any(text.startswith("count=") for text in call.texts):
        analysis.report.add_unresolved("`dd` copies without end")


_XXD_VALUED = names_in("-l -c -s -g -o -len -cols -seek -n")


def _xxd(analysis: ShellAnalysis, call: CommandCall) -> None:
    files: list[Word] = []
    rest = iter(call.arguments)
    for word in rest:
        if word.text in _XXD_VALUED:
            next(rest, None)
        elif not word.is_option:
            files.append(word)
    for index, word in enumerate(files):
        analysis.add_file_effect(EffectKind.WRITE if index else EffectKind.READ, word)


_OPENSSL_READS = names_in("-in -inkey -key -CAfile -cert -signature -verify -config -kfile -pass_file")
_OPENSSL_WRITES = names_in("-out -keyout -writerand")
_OPENSSL_NETWORK = names_in("s_client s_server s_time ocsp")
_OPENSSL_KEYS = names_in("req ca genrsa genpkey ecparam rsa pkcs12 engine smime cms")


def _openssl(analysis: ShellAnalysis, call: CommandCall) -> None:
    verb = call.texts[0] if call.arguments else ""
    rest = iter(call.arguments[1:])
    for word in rest:
        if word.text in _OPENSSL_READS:
            analysis.add_file_effect(EffectKind.READ, next(rest, Word("")))
        elif word.text in _OPENSSL_WRITES:
            analysis.add_file_effect(EffectKind.WRITE, next(rest, Word("")))
        elif word.text == "-engine":
            analysis.report.add_violation(Violation.ESCAPE)
        elif verb in ("dgst", "md5", "sha1", "sha256", "sha512") and not word.is_option:
            analysis.add_file_effect(EffectKind.READ, word)
    if verb in _OPENSSL_NETWORK:
        analysis.report.add_effect(EffectKind.NETWORK, join_words(call.arguments))
    elif verb in _OPENSSL_KEYS:
        analysis.report.add_effect(EffectKind.SECRET, f"openssl {verb}")


_GPG_LISTS = names_in("--list-keys -k --verify --fingerprint --version --help")


def _gpg(analysis: ShellAnalysis, call: CommandCall) -> None:
    if not _GPG_LISTS & set(call.texts):
        analysis.report.add_effect(EffectKind.SECRET, call.line)
    for word in call.operands:
        analysis.add_file_effect(EffectKind.READ, word)


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
