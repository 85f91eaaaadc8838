"""Which language a fence, a file name, a media type or a first line speaks of.

A language that no guard knows is named all the same: code in it is refused by its name.
"""

import re
import unicodedata
from urllib.parse import unquote

from qwed.guards.code_words import LANGUAGE_ALIASES, LANGUAGES
from qwed.words.normal import normalize

NOTEBOOK = "notebook"
PROMPT = "what is typed at Python's prompt"
BINARY = "a program that is no text"

_FOREIGN: list[str] = re.findall(
    r"\S+",
    """
    applescript asm awk bat batch batchfile c c# c++ clojure cmd cobol coffeescript cpp crystal cs csh csharp cxx
    dart docker dockerfile elixir erlang f# fish fortran fsharp go golang groovy haskell java julia kotlin kt lisp
    livescript lua make makefile matlab nasm nim nu objc objective-c ocaml pascal perl php pl powershell prolog ps
    ps1 pwsh r raku rb rs ruby rust scala scheme solidity svelte swift tcl tcsh vb vba vbnet vbs vbscript vue wasm
    wat zig
    """,
)
_SPELT = {
    "bashrc": "bash",
    "bigquery": "sql",
    "cjs": "javascript",
    "console": "console",
    "cts": "typescript",
    "cython": "python",
    "duckdb": "sql",
    "ecmascript": "javascript",
    "hive": "sql",
    "hiveql": "sql",
    "httpd-php": "php",
    "ipynb": NOTEBOOK,
    "ipython": "python",
    "ipython3": "python",
    "jscript": "javascript",
    "ksh": "bash",
    "mariadb": "sql",
    "mjs": "javascript",
    "mssql": "sql",
    "mts": "typescript",
    "mysql": "sql",
    "nodejs": "javascript",
    "oracle": "sql",
    "plpgsql": "sql",
    "plsql": "sql",
    "postgres": "sql",
    "postgresql": "sql",
    "psql": "sql",
    "profile": "bash",
    "py3": "python",
    "pycon": PROMPT,
    "pyx": "python",
    "pyi": "python",
    "python-repl": PROMPT,
    "python2": "python",
    "pyw": "python",
    "sage": "python",
    "sh-session": "console",
    "shell-script": "bash",
    "shell-session": "console",
    "shellscript": "bash",
    "snowflake": "sql",
    "sqlite": "sql",
    "terminal": "console",
    "tsql": "sql",
    "zsh": "bash",
    "zshrc": "bash",
}
_BINARY: frozenset[str] = frozenset(
    re.findall(r"\w+", "apk class deb dll dylib egg elf exe jar msi pyc pyd pyo pyz rpm scr so war whl")
)
_NAMED = {"makefile": "makefile", "gnumakefile": "makefile", "dockerfile": "dockerfile", "jenkinsfile": "groovy"}
_BINARY_TYPES = re.compile(
    r"application/(?:wasm|java-archive|vnd\.microsoft\.portable-executable|(?:x-)?(?:msdownload|dosexec|executable|elf"
    r"|sharedlib|java-applet|bytecode\.python|mach-binary))"
)
_MAGIC = (b"\x7fELF", b"MZ", b"\0asm", b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")
_KNOWN: dict[str, str] = {
    **{name: name for name in (*_FOREIGN, *LANGUAGES)},
    **LANGUAGE_ALIASES,
    **_SPELT,
}
_TYPED = {"application/ecmascript": "javascript", "application/x-ipynb+json": NOTEBOOK, "application/sql": "sql"}
_MEDIA = re.compile(r"(?:text|application)/(?:x-|vnd\.)?([a-z0-9+#.-]+)")
_SUFFIX = re.compile(r"[-.](?:code|script|source|src)\Z|\A(?:script|bytecode)\.|[0-9.]+\Z")
_PREFIX = re.compile(r"\A(?:language|lang|highlight|brush|source)[-_:]")
_VERSION = re.compile(r"(?<=[a-z])[-_]?[0-9]+(?:\.[0-9]+)*\Z")
_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,10})\Z")
_UNSEEN = re.compile(r"(?:[\s.]|[^\w\x21-\x7e])+\Z")
_LONGEST = 256
_BESIDE = re.compile(r"[?#:;]|\s+\(")
_FIRST = re.compile(r"[:/,;=|]")
_SHEBANG = re.compile(r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*(?:\S+=\S*[ \t]+)*)?(?:\S*/)?([A-Za-z+#]+)")
_DOCUMENT = frozenset({"ps", "r", "c", "cs", "kt", "console"})
"""Words that name something else in a media type, where a program would be told by its name."""


def language_named(word: str) -> str | None:
    """The language that a word of a fence names, alone (`py`), before a file (`py:a.py`) or by one (`a.py`)."""
    seen = "".join(each for each in normalize("NFKC", word[:_LONGEST]) if unicodedata.category(each) != "Cf")
    plain = _PREFIX.sub("", seen.lower().strip("{}.,:"))
    return (
        _KNOWN.get(plain)
        or _KNOWN.get(_VERSION.sub("", plain))
        or _KNOWN.get(_FIRST.split(plain, maxsplit=1)[0])
        or language_of_name(plain)
    )


def language_of(name: str, media_type: str) -> str | None:
    """The language of a file that is a program by its name or its media type."""
    return language_of_name(name) or _of_media(media_type.partition(";")[0].strip().lower())


def language_of_name(name: str) -> str | None:
    """The language of a file that is a program by its name."""
    if len(name) > 2 * _LONGEST:
        name = name[:_LONGEST] + name[-_LONGEST:]
    # Some systems leave out what is at the end of a name and cannot be seen, others a stream or a question.
    plain = _BESIDE.split(_UNSEEN.sub("", unquote(normalize("NFKC", name))), maxsplit=1)[0].rstrip("/~ ")
    last = plain.rpartition("/")[2].rpartition("\\")[2].lower()
    extension = _EXTENSION.search(plain)
    found = extension[1].lower() if extension else ""
    return _KNOWN.get(found) or _NAMED.get(last) or (BINARY if found in _BINARY else None)


def _of_media(media_type: str) -> str | None:
    if media_type in _TYPED:
        return _TYPED[media_type]
    if _BINARY_TYPES.fullmatch(media_type):
        return BINARY
    match = _MEDIA.fullmatch(media_type)
    if match is None or match[1] in _DOCUMENT:
        return None
    return _KNOWN.get(match[1]) or _KNOWN.get(_SUFFIX.sub("", match[1]))


def is_binary(content: bytes) -> bool:
    """Whether bytes begin as a program that a machine runs."""
    return content.startswith(_MAGIC) and b"\0" in content[:64]


def script_language(text: str) -> str | None:
    """The language of a text whose first line names its interpreter."""
    line = _SHEBANG.match(text)
    if line is None:
        return None
    word: str = line[1].lower()
    return _KNOWN.get(word, word)
