"""Roles of operands of text tools with a language or escapes of their own."""

import re

from qwed.guards._shell.command_model import DataSource, Word, names_in
from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.guards._shell.grammar.parser import ParsedCommand
from qwed.guards._shell.listings import excludes_secrets, is_narrow_search, lists_any_name
from qwed.model import EffectKind

_FILTER_ENVIRONMENT = re.compile(
    r"\benv\b(?!\s*:)|\$ENV|\benv\(|strenv|envsubst|load\w*\s*\(|\$__loc__|\bsystem\b|\beval\b"
)
_FILTER_MODULE = re.compile(r"\b(?:import|include)\b\s*\"|input_line_number|\bload\w*\s*\(|\bgetpath\(\[\s*\"env")


def _filter(context: RoleContext, argument: Argument) -> None:
    """Report a filter of jq or yq that prints the environment or loads modules."""
    if not argument.word.is_resolved:
        context.unresolved(f"a filter of `{context.call.name}` is known only at run time")
    if _FILTER_ENVIRONMENT.search(argument.word.text):
        context.add(EffectKind.SECRET, "environment")
    if _FILTER_MODULE.search(argument.word.text):
        context.unresolved(f"a filter of `{context.call.name}` loads a module or another file")


def _searched(context: RoleContext, argument: Argument) -> None:
    """Report a file or a tree that is searched; a search that may match secrets shows them."""
    parsed, word = context.parsed, argument.word
    is_tree = parsed.has("recursive") or context.call.name == "rgrep"
    if is_tree and word.text == "-":
        word = word._replace(text=".")
    any_name = word.any_name or (is_tree and not _is_narrowed_tree(parsed))
    shown = not (parsed.has("names-only") or _is_narrow(parsed))
    context.add_file(EffectKind.READ, word._replace(any_name=any_name, is_summarized=not shown))
    if is_tree:
        context.analysis.add_tree_read(word)


def _searched_tree(context: RoleContext, argument: Argument) -> None:
    """Report a tree that is searched without its hidden and ignored files, unless an option includes them."""
    parsed, word = context.parsed, argument.word
    hides = parsed.has("shows-hidden") or sum(option.kind == "unrestricted" for option in parsed.options) > 1
    any_name = hides and not (parsed.has("names-only") or _is_narrow(parsed) or _is_narrowed_tree(parsed))
    context.add_file(EffectKind.READ, word._replace(any_name=word.any_name or any_name))
    context.analysis.add_tree_read(word)


def _is_narrow(parsed: ParsedCommand) -> bool:
    given = parsed.values_of("-e", "--regexp")
    patterns = given or parsed.operands[:1]
    return not parsed.has("inverts", "-f", "--file") and is_narrow_search(patterns)


def _is_narrowed_tree(parsed: ParsedCommand) -> bool:
    """Return True if only files of names that hold no secrets are searched."""
    globs = [word.text for word in parsed.values_of("--include", "-g", "--glob", "--iglob") if word.text[:1] != "!"]
    return bool(parsed.values_of("-t", "--type")) or (bool(globs) and all(map(excludes_secrets, globs)))


def _compared(context: RoleContext, argument: Argument) -> None:
    """Report a file or a tree whose differences from another one are shown."""
    shown = context.parsed.has("recursive", "no-index") and not context.parsed.has("names-only")
    context.add_file(EffectKind.READ, argument.word._replace(any_name=argument.word.any_name or shown))
    if context.parsed.has("recursive"):
        context.analysis.add_tree_read(argument.word)


def _packed(context: RoleContext, argument: Argument) -> None:
    """Report a tree that is packed; an archive on the standard output shows it."""
    archives = context.parsed.values_of("-f", "--file") or context.parsed.operands[:1]
    shown = not context.parsed.values_of("-f", "--file") or any(word.text == "-" for word in archives)
    context.add_file(EffectKind.READ, argument.word._replace(any_name=argument.word.any_name or shown))
    context.analysis.add_tree_read(argument.word)


def _editor_file(context: RoleContext, argument: Argument) -> None:
    """Report a file that is edited; `+` starts an editor command, and standard input holds more of them."""
    text = argument.word.text
    if context.call.stdin.source is not DataSource.NOTHING or (text.startswith("+") and re.search(r"[!:(]", text)):
        context.escape(context.call.line)
    if not text.startswith("+"):
        context.add_file(EffectKind.WRITE, argument.word)


def _dc_text(context: RoleContext, argument: Argument) -> None:
    if "!" in argument.word.text:
        context.escape(context.call.line)


def _man_page(context: RoleContext, argument: Argument) -> None:
    """Report a page that is named by its path: its requests can include other files."""
    if "/" in argument.word.text or argument.word.text.startswith("."):
        context.add_file(EffectKind.READ, argument.word)
        context.unresolved(f"the requests in `{argument.word.text[:64]}` are not known")


_CHARSET_SUFFIXES = frozenset({"", "translit", "ignore", "non_identical_discard"})


def _charset(context: RoleContext, argument: Argument) -> None:
    """Report a character set that is described by a file."""
    name, *suffixes = argument.word.text.split("//")
    if "/" in name or not name or not _CHARSET_SUFFIXES.issuperset(map(str.lower, suffixes)):
        context.add_file(EffectKind.READ, argument.word)
    elif not argument.word.is_exact:
        context.unresolved(f"`{name[:64]}` is known only at run time")


_FORMATTERS = names_in(
    """
    stylish json html json-with-metadata compact unix checkstyle junit tap codeframe visualstudio jslint-xml
    pretty-error table github
    """
)
"""Formatters that are part of a linter; another name is that of a file or a package."""


def _formatter(context: RoleContext, argument: Argument) -> None:
    """Report a formatter that is loaded from a file or a package."""
    if argument.word.text not in _FORMATTERS:
        context.escape(argument.word.text)


_PHP_STANDARDS = names_in("PSR1 PSR2 PSR12 PEAR Squiz Zend Generic MySource")


def _php_standard(context: RoleContext, argument: Argument) -> None:
    """Report rules that may load code: all but those that are part of phpcs."""
    if not _PHP_STANDARDS.issuperset(argument.word.text.split(",")):
        context.escape(argument.word.text)


_YAML_BASE = re.compile(r"extends[\"']?\s*:\s*[\"']?(?:default|relaxed|empty)\b")


def _yaml_config(context: RoleContext, argument: Argument) -> None:
    """Report a configuration in the command line that names files."""
    text = argument.word.text
    if "file" in text or "extends" in _YAML_BASE.sub("", text) or not argument.word.is_exact:
        context.unresolved(f"`{text[:64]}` may name a file")


_RUFF_SETTING = re.compile(
    r"\s*(?:lint\.[\w.-]+|format\.[\w.-]+|line-length|indent-width|target-version|preview)\s*=", re.DOTALL
)


def _ruff_config(context: RoleContext, argument: Argument) -> None:
    """Report a configuration file, or a setting that changes what is written."""
    if "=" not in argument.word.text:
        context.add_file(EffectKind.READ, argument.word)
    elif not _RUFF_SETTING.match(argument.word.text):
        context.unresolved(f"the setting `{argument.word.text[:64]}` of `ruff` is not known")


_DATA_FILE = re.compile(r".*\.(?:json|jsonc|json5|ya?ml|toml|ini|cfg)", re.DOTALL)


def _data_config(context: RoleContext, argument: Argument) -> None:
    """Report a configuration; one that is not plain data is code."""
    context.add_file(EffectKind.READ, argument.word)
    if not _DATA_FILE.fullmatch(argument.word.text):
        context.add(EffectKind.EXECUTE, argument.word.text)


_INCLUDING = re.compile(r"(?:rst|latex|org|typst|t2t|tex|muse)\b")
_INCLUDING_FILE = re.compile(r".*\.(?:rst|tex|latex|ltx|org|typ|t2t|lua)", re.DOTALL)


def _input_format(context: RoleContext, argument: Argument) -> None:
    """Report a format whose documents include other files."""
    if _INCLUDING.match(argument.word.text) and not context.parsed.has("--sandbox"):
        context.unresolved(f"a document of the format `{argument.word.text[:64]}` may include files")
    elif not re.fullmatch(r"[\w+-]+", argument.word.text):
        context.unresolved(f"`{argument.word.text[:64]}` is not a known format")


def _document(context: RoleContext, argument: Argument) -> None:
    """Report a document; by its ending, it may include other files."""
    if _ADDRESS.match(argument.word.text):
        context.add(EffectKind.NETWORK, argument.word.text)
    else:
        context.add_file(EffectKind.READ, argument.word)
    if _INCLUDING_FILE.fullmatch(argument.word.text) and not context.parsed.has("--sandbox"):
        context.unresolved(f"`{argument.word.text[:64]}` may include files")


_ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*://")
_PLAIN_METADATA = re.compile(
    r"(?:title|subtitle|author|date|lang|keywords|abstract|pagetitle|subject|toc-title)\b.*", re.DOTALL
)


def _metadata(context: RoleContext, argument: Argument) -> None:
    """Report a field of a document that may name a file, such as `bibliography=file`."""
    if not _PLAIN_METADATA.fullmatch(argument.word.text):
        context.unresolved(f"the field `{argument.word.text[:64]}` may name a file")


_XVFB = re.compile(
    r"\s*(?:(?:-screen \d+ \d+x\d+x\d+|-ac|-noreset|-nocursor|-nolisten \w+|[+-]extension \w+|[+-]render|-dpi \d+)\s*)*"
)


def _display_arguments(context: RoleContext, argument: Argument) -> None:
    """Report arguments of an X server that are not known to be harmless."""
    if not (_XVFB.fullmatch(argument.word.text) and argument.word.is_exact):
        context.unresolved(f"`{argument.word.text[:64]}` is not understood")


def _psql_variable(context: RoleContext, argument: Argument) -> None:
    """Report a variable of psql itself: a prompt runs programs, a history is written."""
    if re.match(r"PROMPT|HISTFILE", argument.word.text) or not argument.word.text.strip():
        context.escape(argument.word.text)


def _command_for_each(context: RoleContext, argument: Argument) -> None:
    """Report a command that runs for every match."""
    words = [argument.word, *argument.following]
    inner = words[: next((index for index, word in enumerate(words) if word.text == ";"), len(words))]
    any_name = lists_any_name("fd", context.call.arguments)
    matches = Word(".", is_exact=False, pattern=True, is_computed=True, any_name=any_name)
    context.analysis.visit_command([*(word for word in inner if word.text != "{}"), matches])


_GH_GRAPHQL = re.compile(r"/?graphql\b")


def _gh_endpoint(context: RoleContext, argument: Argument) -> None:
    """Report a GraphQL request, whose effect is in its query, and variables of GitLab, which hold secrets."""
    if context.call.name == "glab" and re.search(r"variables|tokens?\b|triggers", argument.word.text):
        context.add(EffectKind.SECRET)
    if _GH_GRAPHQL.match(argument.word.text):
        context.unresolved("the effect of a GraphQL request is not known")


def _gh_method(context: RoleContext, argument: Argument) -> None:
    method = argument.word.text.upper()
    if method not in ("GET", "HEAD"):
        context.add(EffectKind.DELETE if method == "DELETE" else EffectKind.WRITE)


def _media_template(context: RoleContext, argument: Argument) -> None:
    """Report a template that is read from a file."""
    if "file:" in argument.word.text or not argument.word.is_exact:
        context.unresolved(f"the template `{argument.word.text[:64]}` is not known")


_SELECTOR = re.compile(r"\.?[\w-]*(?:\.[\w-]+|\.?\[(?:\d+|\*|all\(\))?\]|\.\*)*\.?")


def _selector(context: RoleContext, argument: Argument) -> None:
    """Report a selector that is more than a path of keys: it is code, which can read and write files."""
    if not argument.word.is_resolved or not _SELECTOR.fullmatch(argument.word.text):
        context.unresolved(f"the selector `{argument.word.text[:64]}` of `{context.call.name}` is not a path of keys")


def _exif_tag(context: RoleContext, _argument: Argument) -> None:
    """Report that a tag is given a value, which changes the files."""
    for word in context.parsed.operands:
        context.add_file(EffectKind.WRITE, word)


def _miller_source(context: RoleContext, argument: Argument) -> None:
    """Report an input of Miller, which `-I` changes."""
    context.add_file(EffectKind.WRITE if context.parsed.has("in-place") else EffectKind.READ, argument.word)


def _miller_value(context: RoleContext, argument: Argument) -> None:
    """Report a value that may be meant as the next verb, or as an option."""
    if argument.word.text == "then" or not argument.word.is_resolved:
        context.unresolved(f"`{argument.word.text[:64]}` of `{argument.option}` may be a verb")


def _miller_files(context: RoleContext, argument: Argument) -> None:
    """Report the files after a verb of Miller, or the verb that `then` adds."""
    words = [argument.word, *argument.following]
    if words[0].text == "then":
        in_place = [Word("-I")] if context.parsed.has("in-place") else []
        context.analysis.visit_command([Word("mlr"), *in_place, *words[1:]])
        return
    for word in words:
        _miller_source(context, argument._replace(word=word))


ROLES: dict[str, Role] = {
    "selector": _selector,
    "exif-tag": _exif_tag,
    "mlr-value": _miller_value,
    "mlr-source": _miller_source,
    "mlr-files": _miller_files,
    "media-template": _media_template,
    "filter": _filter,
    "editor-file": _editor_file,
    "dc-text": _dc_text,
    "formatter": _formatter,
    "php-standard": _php_standard,
    "yaml-config": _yaml_config,
    "ruff-config": _ruff_config,
    "data-config": _data_config,
    "input-format": _input_format,
    "document": _document,
    "metadata": _metadata,
    "display-arguments": _display_arguments,
    "psql-variable": _psql_variable,
    "searched": _searched,
    "searched-tree": _searched_tree,
    "compared": _compared,
    "packed": _packed,
    "man-page": _man_page,
    "charset": _charset,
    "command-for-each": _command_for_each,
    "gh-endpoint": _gh_endpoint,
    "gh-method": _gh_method,
}
