"""Programming language of a fence, a file name, a media type or a first line.

Languages without a guard are named too, so that code in them is refused with its name.
"""

import re
import unicodedata
from urllib.parse import unquote

from qwed.guards.code_findings import LANGUAGE_ALIASES, LANGUAGES
from qwed.model.unicode_normal import normalize

NOTEBOOK = "notebook"
PROMPT = "python-repl"
BINARY = "binary"

_FOREIGN = (
    "applescript asm awk bat batch batchfile c c# c++ clojure cmd cobol coffeescript cpp crystal cs csh csharp "
    "cxx dart docker dockerfile elixir erlang f# fish fortran fsharp go golang groovy haskell java julia kotlin "
    "kt lisp livescript lua make makefile matlab nasm nim nu objc objective-c ocaml pascal perl php pl "
    "powershell prolog ps ps1 pwsh r raku rb rs ruby rust scala scheme solidity svelte swift tcl tcsh vb vba "
    "vbnet vbs vbscript vue wasm wat zig"
)
_SYNONYMS = {
    NOTEBOOK: "ipynb",
    PROMPT: "pycon python-repl",
    "bash": "bashrc ksh profile shell-script shellscript zsh zshrc",
    "console": "console sh-session shell-session terminal",
    "javascript": "cjs ecmascript jscript mjs nodejs",
    "php": "httpd-php",
    "python": "cython ipython ipython3 py3 pyx pyi python2 pyw sage",
    "sql": "bigquery duckdb hive hiveql mariadb mssql mysql oracle plpgsql plsql postgres postgresql psql "
    "snowflake sqlite tsql",
    "typescript": "cts mts",
}
"""Further names of each language."""
_BINARY = "apk class deb dll dylib egg elf exe jar msi pyc pyd pyo pyz rpm scr so war whl"
_NAMED = {"makefile": "makefile", "gnumakefile": "makefile", "dockerfile": "dockerfile", "jenkinsfile": "groovy"}
_BINARY_TYPES = re.compile(
    r"application/(?:wasm|java-archive|vnd\.microsoft\.portable-executable|(?:x-)?(?:msdownload|dosexec|executable|elf"
    r"|sharedlib|java-applet|bytecode\.python|mach-binary))"
)
_MAGIC = (b"\x7fELF", b"MZ", b"\0asm", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")
_KNOWN: dict[str, str] = {
    **{name: name for name in (*_FOREIGN.split(), *LANGUAGES)},
    **LANGUAGE_ALIASES,
    **{name: language for language, names in _SYNONYMS.items() for name in names.split()},
}
_BINARIES = frozenset(_BINARY.split())
_TYPED = {"application/ecmascript": "javascript", "application/x-ipynb+json": NOTEBOOK, "application/sql": "sql"}
_MEDIA = re.compile(r"(?:text|application)/(?:x-|vnd\.)?([a-z0-9+#.-]+)")
_SUFFIX = re.compile(r"[-.](?:code|script|source|src)\Z|\A(?:script|bytecode)\.|[0-9.]+\Z")
_PREFIX = re.compile(r"\A(?:language|lang|highlight|brush|source)[-_:]")
_VERSION = re.compile(r"(?<=[a-z])[-_]?[0-9]+(?:\.[0-9]+)*\Z")
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,10})\Z")
_UNSEEN = re.compile(r"(?:[\s.]|[^\w\x21-\x7e])+\Z")
_MAX_WORD_LENGTH = 256
_NAME_SUFFIX = re.compile(r"[?#:;]|\s+\(")
_WORD_END = re.compile(r"[:/,;=|]")
_SHEBANG = re.compile(r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*(?:\S+=\S*[ \t]+)*)?(?:\S*/)?([A-Za-z+#]+)")
_DOCUMENT = frozenset({"ps", "r", "c", "cs", "kt", "console"})
"""Words that name something else in a media type; a program would be recognised by its file name."""


def language_named(word: str) -> str | None:
    """Return the language that a fence's word names: alone (`py`), before a file (`py:a.py`) or as a file (`a.py`)."""
    visible = "".join(
        character for character in normalize("NFKC", word[:_MAX_WORD_LENGTH]) if unicodedata.category(character) != "Cf"
    )
    plain = _PREFIX.sub("", visible.lower().strip("{}.,:"))
    return (
        _KNOWN.get(plain)
        or _KNOWN.get(_VERSION.sub("", plain))
        or _KNOWN.get(_WORD_END.split(plain, maxsplit=1)[0])
        or language_of_name(plain)
    )


def language_of(name: str, media_type: str) -> str | None:
    """Return the language of a file that is a program by its name or media type, or None."""
    return language_of_name(name) or _language_of_media_type(media_type.partition(";")[0].strip().lower())


def language_of_name(name: str) -> str | None:
    """Return the language of a file that is a program by its name, or None."""
    if len(name) > 2 * _MAX_WORD_LENGTH:
        name = name[:_MAX_WORD_LENGTH] + name[-_MAX_WORD_LENGTH:]
    # Some systems ignore invisible characters at the end of a name, others a stream name or a query.
    plain = _NAME_SUFFIX.split(_UNSEEN.sub("", unquote(normalize("NFKC", name))), maxsplit=1)[0].rstrip("/~ ")
    last = plain.rpartition("/")[2].rpartition("\\")[2].lower()
    extension = _EXTENSION.search(plain)
    suffix = extension[1].lower() if extension else ""
    return _KNOWN.get(suffix) or _NAMED.get(last) or (BINARY if suffix in _BINARIES else None)


def _language_of_media_type(media_type: str) -> str | None:
    if media_type in _TYPED:
        return _TYPED[media_type]
    if _BINARY_TYPES.fullmatch(media_type):
        return BINARY
    match = _MEDIA.fullmatch(media_type)
    if match is None or match[1] in _DOCUMENT:
        return None
    return _KNOWN.get(match[1]) or _KNOWN.get(_SUFFIX.sub("", match[1]))


def is_binary(content: bytes) -> bool:
    """Return True if the bytes begin like a machine-code program."""
    return content.startswith(_MAGIC) and b"\0" in content[:64]


def script_language(text: str) -> str | None:
    """Return the language of a text whose first line names its interpreter, or None."""
    line = _SHEBANG.match(text)
    if line is None:
        return None
    word: str = line[1].lower()
    return _KNOWN.get(word, word)
