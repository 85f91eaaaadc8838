"""Write the generated tables of docs/; with --check only report whether they are up to date.

A table is between `<!-- generated: name -->` and `<!-- end -->`; conformance.md and sdk-reference.md are generated
completely, and so is policy.schema.json. Run by `make docs` and by the tests.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

import sdk_reference

from qwed.api.routes import ROUTES
from qwed.cli.app import iter_commands
from qwed.engines._sql.function_names import pure_names
from qwed.engines._sql.lexer import rules_by_dialect
from qwed.guards._python import module_names
from qwed.guards._secrets.token_rules import TOKEN_RULES, vendor_rules
from qwed.guards._shell.env_variables import environment_variables
from qwed.guards._shell.grammar.loader import library
from qwed.guards._shell.grammar.model import Command
from qwed.kernel.stages.assess_risk import WEIGHTS
from qwed.kernel.tool_verbs import verbs_by_meaning
from qwed.kernel.tools import ACTION_TYPES, TOOLS, Tool
from qwed.model import Effect, EffectKind, ErrorCode, Risk, facts
from qwed.model.decision_matrix import STATUS_MATRIX, TRUST_MATRIX
from qwed.model.effect import RISK_OF
from qwed.policy import compiler, document_reader, evaluator, example_reader, iterations, yaml_reader
from qwed.policy.json_schema import policy_schema
from qwed.policy.reference import FUNCTION_ROWS, VARIABLE_ROWS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
_SECTION = re.compile(r" \(spec [\d.]+\)")
_WIDE = 200
_MOST_NAMES = 40
_PLACE = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _errors() -> str:
    rows = ([f"`{row.code}`", row.http, row.meaning, "no" if row.final else "yes", row.advice] for row in ErrorCode)
    return _table(["code", "HTTP", "meaning", "may the same request pass later", "what helps"], rows)


def _routes() -> str:
    rows = (
        [
            f"`{route.method} {route.path}`",
            _SECTION.sub("", route.summary),
            ", ".join(f"`{name}`" for name in route.query),
        ]
        for route in ROUTES
    )
    return _table(["route", "what it does", "query"], rows)


def _tool_rows(tools: Iterable[Tool]) -> str:
    rows = (
        [
            f"`{tool.name}`",
            tool.risk_level,
            tool.effect or ("read off its content" if tool.verification_engine else "none"),
            tool.verification_engine or "tool",
            "always" if tool.dangerous else "below level 3" if tool.requires_approval else "",
        ]
        for tool in tools
    )
    return _table(["name", "base risk", "effect", "judged by", "a person approves"], rows)


def _action_types() -> str:
    return _tool_rows(ACTION_TYPES.values())


def _tools() -> str:
    return _tool_rows(tool for name, tool in TOOLS.items() if name not in ACTION_TYPES)


def _tool_verbs() -> str:
    risks = {"READ": "low", "interact": "medium", "dispatch": "as its `action` says"}
    rows = (
        [meaning, risks.get(meaning) or RISK_OF[EffectKind(meaning)].word, ", ".join(f"`{verb}`" for verb in verbs)]
        for meaning, verbs in verbs_by_meaning().items()
    )
    return _table(["meaning", "risk", "verbs"], rows)


def _trust() -> str:
    rows = ([f"{int(trust)} {trust.word}", *row.values()] for trust, row in TRUST_MATRIX.items())
    return _table(["trust", *(risk.word for risk in Risk)], rows)


def _status() -> str:
    rows = ([f"`{status}`", *row.values()] for status, row in STATUS_MATRIX.items())
    return _table(["verification", *(risk.word for risk in Risk)], rows)


def _effects() -> str:
    return _table(["effect", "risk"], ([f"`{kind}`", risk.word] for kind, risk in RISK_OF.items()))


def _factors() -> str:
    return _table(["factor", "weight"], ([f"`{name}`", weight] for name, weight in WEIGHTS.items()))


def _commands() -> str:
    rows = [
        ["" if number else f"`{path}`", shown, told]
        for path, command in iter_commands()
        for number, (shown, told) in enumerate(_parts(command))
    ]
    return _table(["command", "argument or option", "what it is for"], rows)


def _parts(command: Any) -> Iterator[tuple[str, str]]:
    """Yield the description of a command, then each argument and option with its help."""
    yield "", f"**{_cell(command.get_short_help_str(_WIDE))}**"
    for param in command.params:
        if not getattr(param, "is_obfuscated", False):
            value = param.metavar or param.name.upper()
            if param.param_type_name == "option":
                names = ", ".join([*param.opts, *param.secondary_opts])
                value = names if param.is_flag else f"{names} {value}"
            yield f"`{_cell(value)}`", _cell(param.help)


def _questions() -> str:
    """Return a table of every check of every pack with its values; the one that `query` stands for is marked."""
    rows = []
    for pack in ("legal", "finance", "ucp", "tax"):
        for row in import_module(f"qwed_{pack}.{pack}_checks").CHECKS.values():
            marked = {row.text: f"**`{row.text}`**"} if row.text else {}
            required, optional = (
                ", ".join(marked.get(name, f"`{name}`") for name in names) for names in (row.required, row.optional)
            )
            rows.append([pack, f"`{row.name}`", _cell(row.says), required, optional])
    return _table(["`type`", "`operation`", "what it finds out", "values", "may be given"], rows)


def _sql_dialects() -> str:
    rows = (
        [f"`{dialect}`", len(pure_names(dialect)), ", ".join(sorted(rules)).replace("_", " ")]
        for dialect, rules in sorted(rules_by_dialect().items())
        if dialect
    )
    return _table(["dialect", "functions that only compute", "own rules for strings, names and comments"], rows)


def _programs() -> str:
    """Return a table of every program with an option grammar: its effects, and its subcommands that only read."""
    grammars = library()
    table = []
    for names in _groups(grammars.blocks):
        command = grammars.program(names[0])
        if command is not None:
            reads = [name for name in command.subcommands if _only_reads(command.subcommand(name))]
            shown = [f"`{name}`" for name in reads[:_MOST_NAMES]] + ["..."] * (len(reads) > _MOST_NAMES)
            table.append([", ".join(f"`{name}`" for name in names), _effects_of(command), " ".join(shown)])
    return _table(["programs", "effect, besides those of options and operands", "subcommands that only read"], table)


def _environment() -> str:
    """Return a table of the variables that may be in the environment of a program."""
    names: dict[str, list[str]] = {}
    for name, value in environment_variables():
        names.setdefault(value, []).append(f"`{name}`")
    return _table(["allowed value", "variables"], [[value, " ".join(row)] for value, row in names.items()])


def _groups(blocks: dict[str, list[Any]]) -> list[list[str]]:
    """Return the names of the programs that share a description."""
    names: dict[int, list[str]] = {}
    for name, block in blocks.items():
        names.setdefault(id(block), []).append(name)
    return sorted(names.values())


def _only_reads(command: Command | None) -> bool:
    if command is None or command.subcommands:
        return False
    return bool(command.outcomes) and not any(outcome.effects for outcome in command.outcomes)


def _effects_of(command: Command) -> str:
    if command.subcommands:
        return "by subcommand"
    words = [", ".join(outcome.effects) or "read" for outcome in command.outcomes]
    return " or ".join(dict.fromkeys(words))


def _cell(text: str | None) -> str:
    return " ".join((text or "").replace("|", "\\|").split())


def _python_modules() -> str:
    rows = []
    for file, title in zip(module_names.FILES, ("standard library", "packages"), strict=True):
        roots: dict[str, int] = {}
        for module, names in module_names.read_rows(file).items():
            root = module.partition(".")[0]
            roots[root] = roots.get(root, 0) + len(names.split())
        listed = ", ".join(f"`{root}` {count}" for root, count in sorted(roots.items()))
        rows.append([title, str(sum(roots.values())), listed])
    return _table(["from", "names", "module and number of names that only compute"], rows)


def _secret_kinds() -> str:
    by_form = sorted({rule.kind for rule in TOKEN_RULES})
    by_vendor = sorted({rule.kind for rules in vendor_rules().values() for rule in rules})
    rows = (
        [name, ", ".join(f"`{kind}`" for kind in kinds)]
        for name, kinds in (("by its form", by_form), ("beside the name of the vendor", by_vendor))
    )
    return _table(["recognised", "kinds of findings"], rows)


def _facts() -> str:
    """Return a table of the fields of each group of facts, from the docstrings of the types."""
    described = _described_fields(facts)
    groups = {item.name: item.type for item in fields(facts.Facts)}
    parts = []
    for name, hint in groups.items():
        kind = next(part for part in get_args(hint) if is_dataclass(part))
        parts.append(f"### `{name}`\n\n{kind.__doc__}\n\n{_field_table(kind, described)}")
    note = f"### Entries of `shell.commands`\n\n{facts.ShellCommand.__doc__}\n\n"
    return "\n" + "\n".join([*parts, note + _field_table(facts.ShellCommand, described)]) + "\n"


def _field_table(kind: Any, described: dict[tuple[str, str], str]) -> str:
    rows = (
        [f"`{item.name}`", _type_name(item.type), _cell(described[kind.__name__, item.name])] for item in fields(kind)
    )
    return _table(["field", "type", "meaning"], rows)


def _type_name(hint: Any) -> str:
    """Return the type of a fact as a rule sees it."""
    inner = [part for part in get_args(hint) if part not in (Ellipsis, type(None))]
    if get_origin(hint) is tuple:
        return f"list of {_type_name(inner[0])}"
    if inner:
        return f"{_type_name(inner[0])}, or absent"
    names = {str: "text", bool: "true or false", int: "integer", Effect: "effect", facts.ShellCommand: "command"}
    return names[hint]


def _described_fields(module: ModuleType) -> dict[tuple[str, str], str]:
    """Return the docstring below each field of each class."""
    described = {}
    for kind in ast.parse(inspect.getsource(module)).body:
        for item, below in pairwise(kind.body) if isinstance(kind, ast.ClassDef) else ():
            if (
                isinstance(item, ast.AnnAssign)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            ):
                described[kind.name, ast.unparse(item.target)] = str(below.value.value)
    return described


def _policy_keys() -> str:
    return _schema_rows(policy_schema())


def _policy_rule_keys() -> str:
    return _schema_rows(policy_schema()["properties"]["rules"]["items"])


def _schema_rows(schema: dict[str, Any]) -> str:
    rows = (
        [f"`{key}`", "yes" if key in schema["required"] else "", part.get("description") or POLICY_KEY_TEXTS[key]]
        for key, part in schema["properties"].items()
    )
    return _table(["key", "required", "meaning"], rows)


POLICY_KEY_TEXTS = {
    "description": "one sentence for people",
    "applies_to": "`tools`: tools and action types; `agents`: a condition over the agent; without them, all",
    "rules": "the rules; their order does not matter",
    "tests": "[calls with what is expected](policies.md#tests)",
}


def _policy_limits() -> str:
    rows = [
        ["size of a document", f"{yaml_reader.MAX_BYTES // 1024} KiB"],
        ["levels of mappings and lists", yaml_reader.MAX_DEPTH],
        ["values of a document", f"{yaml_reader.MAX_VALUES:,}"],
        ["rules of a policy", document_reader.MAX_RULES],
        ["policies of a set", compiler.MAX_POLICIES],
        ["rules of a set", f"{compiler.MAX_RULES_OF_SET:,}"],
        ["characters of a condition", f"{document_reader.MAX_CONDITION:,}"],
        ["levels of a condition", 32],
        ["groups of approvers of a rule", document_reader.MAX_APPROVERS],
        ["tests of a policy", f"{document_reader.MAX_TESTS:,}"],
        ["iterations of all rules of a decision", f"{iterations.MAX_ITERATIONS:,}"],
        ["processor time of all rules of a decision", f"{evaluator.MAX_NANOSECONDS // 1_000_000} ms"],
        ["window of `usage`", f"{example_reader.MAX_USAGE_SECONDS // 86_400} days"],
    ]
    return _table(["limit", "value"], rows)


def _policy_variables() -> str:
    rows = ([f"`{name}`", kind, text] for name, kind, text in VARIABLE_ROWS)
    return _table(["name", "type", "meaning"], rows)


def _policy_functions() -> str:
    return _table(["function", "meaning"], ([f"`{shape}`".replace("|", "\\|"), text] for shape, text in FUNCTION_ROWS))


TABLES: dict[str, Callable[[], str]] = {
    "policy_keys": _policy_keys,
    "policy_rule_keys": _policy_rule_keys,
    "policy_limits": _policy_limits,
    "policy_variables": _policy_variables,
    "policy_functions": _policy_functions,
    "secret_kinds": _secret_kinds,
    "errors": _errors,
    "routes": _routes,
    "action_types": _action_types,
    "tools": _tools,
    "tool_verbs": _tool_verbs,
    "trust": _trust,
    "status": _status,
    "effects": _effects,
    "facts": _facts,
    "factors": _factors,
    "commands": _commands,
    "questions": _questions,
    "sql_dialects": _sql_dialects,
    "python_modules": _python_modules,
    "programs": _programs,
    "environment": _environment,
}


def rendered(page: str) -> str:
    """Return the page with every table regenerated."""
    return _PLACE.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", page)


def main(arguments: list[str]) -> int:
    """Return 0 if every page is up to date or was written, 1 if --check found an outdated one."""
    stale = {page: text for page, text in _pages() if not page.exists() or text != page.read_text()}
    for page, text in stale.items():
        if "--check" in arguments:
            print(f"{page.name} is out of date: run make docs")
        else:
            page.write_text(text)
            print(f"wrote {page.name}")
    return int(bool(stale) and "--check" in arguments)


def _pages() -> Iterator[tuple[Path, str]]:
    """Yield every page and its expected text."""
    whole = {DOCS / "conformance.md": _conformance, DOCS / "sdk-reference.md": sdk_reference.page}
    yield from ((page, write()) for page, write in whole.items())
    yield DOCS / "policy.schema.json", json.dumps(policy_schema(), indent=2) + "\n"
    yield from ((page, rendered(page.read_text())) for page in sorted(DOCS.glob("*.md")) if page not in whole)


def _conformance() -> str:
    # A script finds what lies beside it, and the statements lie among the tests.
    sys.path.insert(0, str(ROOT))
    from tests.conformance.page import page
    from tests.conformance.statements import read

    return page(read())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
