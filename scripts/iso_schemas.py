"""Write src/qwed_finance/_iso/schemas: elements of ISO 20022 messages with order, multiplicity and type.

The data comes from the models of `pyiso20022` (install it with `xsdata` in a separate environment) and, where it lacks
a message, from schema files of iso20022.org: `python scripts/iso_schemas.py [pain.008.001.08.xsd ...]`. Models do not
say which types are choices: these are the types whose name ends in `Choice`, and `CHOICES`.
"""

import dataclasses
import enum
import importlib
import pkgutil
import re
import sys
import typing
import xml.etree.ElementTree as Tree
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

ROOM = Path(__file__).parents[1] / "src/qwed_finance/_iso/schemas"
WANTED = re.compile(r"(?:pain_00[128]|pacs_00[248]|camt_05[34])_001_(?!01)\d\d")
CHOICES = {"CashAccountType2", "CashBalanceAvailabilityDate1"}
MAY_BE_EMPTY = re.compile(r"MandateRelatedData\dChoice")
BASES = {"XmlDate": "date", "XmlDateTime": "datetime", "XmlTime": "time", "bool": "boolean", "bytes": "base64"}
NAMED = {
    "[A-Z]{3,3}": "currency",
    "[A-Z]{2,2}": "country",
    "[A-Z]{2,2}[0-9]{2,2}[a-zA-Z0-9]{1,30}": "iban",
    "[A-Z]{6,6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3,3}){0,1}": "bic2009",
    "[A-Z0-9]{4,4}[A-Z]{2,2}[A-Z0-9]{2,2}([A-Z0-9]{3,3}){0,1}": "bic",
    "[A-Z0-9]{18,18}[0-9]{2,2}": "lei",
    "[0-9]{1,15}": "count",
    "[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}": "uuid4",
}
"""Patterns with rules beyond their form."""
XS = "{http://www.w3.org/2001/XMLSchema}"
LEGACY = re.compile(r"[a-z]{4}\.\d{3}\.\d{3}\.\d\d")
"""Root elements of messages from before 2009, which are no longer used."""

types: dict[str, str] = {}
patterns: dict[str, str] = {}
messages: dict[str, str] = {}


def put(name: str, line: str) -> None:
    if types.setdefault(name, line) != line:
        raise SystemExit(f"{name} is defined twice:\n{types[name]}\n{line}")


def simple(base: str, facets: dict[str, Any]) -> str:
    if base == "Decimal":
        least = "+" if str(facets.get("min_inclusive", "")) == "0" else ""
        return f"decimal{facets['total_digits']}.{facets['fraction_digits']}{least}"
    if base == "XmlPeriod":
        return "period"
    if base in BASES:
        return BASES[base]
    if "pattern" in facets:
        # The same pattern, written with and without a backslash that means nothing.
        pattern = facets["pattern"].replace(r"[\+]", "[+]")
        bounds = f"{facets.get('min_length', '')}..{facets.get('max_length', '')}"
        wanted = f"{pattern} {bounds}" if bounds != ".." else pattern
        return patterns.setdefault(wanted, NAMED.get(wanted, f"p{len(patterns) + 1}"))
    return f"{facets.get('min_length', 0)}..{facets.get('max_length', '')}"


def often(least: int, most: int | None) -> str:
    usual = {(1, 1): "", (0, 1): "?", (0, None): "*", (1, None): "+"}
    return usual.get((least, most), f"{{{least},{most}}}")


def one_of_model(module: ModuleType, kind: type) -> None:
    if issubclass(kind, enum.Enum):
        put(kind.__name__, "= " + " ".join(sorted(each.value for each in kind)))
        return
    hints, parts, choice = typing.get_type_hints(kind, vars(module)), [], kind.__name__.endswith("Choice")
    choice = choice or kind.__name__ in CHOICES
    for each in dataclasses.fields(kind):
        facts = dict(each.metadata)
        listed = typing.get_origin(hints[each.name]) is list
        inner = next(t for t in typing.get_args(hints[each.name]) or (hints[each.name],) if t is not NoneType)
        of = inner.__name__ if inner.__module__ == module.__name__ else simple(inner.__name__, facts)
        if facts.get("type") == "Wildcard":
            put(kind.__name__, "*")
            return
        if "type" not in facts:
            parts.append(of)
            continue
        mark = "@" if facts["type"] == "Attribute" else ""
        least = facts.get("min_occurs", 0) if listed else int(bool(facts.get("required")))
        whole = choice and not listed and not MAY_BE_EMPTY.fullmatch(kind.__name__)
        count = often(1 if whole else least, facts.get("max_occurs") if listed else 1)
        parts.append(f"{mark}{facts['name']}{count}={of}")
    sign = "$" if any(part.startswith("@") for part in parts) else "|" if choice else ":"
    put(kind.__name__, f"{sign} " + " ".join(parts))


def read_models() -> None:
    package = importlib.import_module("pyiso20022")
    for area in ("pain", "pacs", "camt"):
        for found in pkgutil.iter_modules([f"{package.__path__[0]}/{area}"]):
            if WANTED.fullmatch(found.name):
                module = importlib.import_module(f"pyiso20022.{area}.{found.name}.{found.name}")
                read_model(module, found.name.replace("_", "."))


def read_model(module: ModuleType, message: str) -> None:
    (root,) = dataclasses.fields(module.Document)
    if LEGACY.fullmatch(root.metadata["name"]):
        return
    messages[message] = f"{root.metadata['name']} {typing.get_type_hints(module.Document)[root.name].__name__}"
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__ and kind.__name__ != "Document":
            one_of_model(module, kind)


def facets_of(restriction: Tree.Element) -> dict[str, Any]:
    names = {"minLength": "min_length", "maxLength": "max_length", "totalDigits": "total_digits"}
    names |= {"fractionDigits": "fraction_digits", "minInclusive": "min_inclusive", "pattern": "pattern"}
    return {
        names[each.tag.removeprefix(XS)]: each.get("value") for each in restriction if each.tag != XS + "annotation"
    }


def read_schema(path: Path) -> None:
    root = Tree.parse(path).getroot()  # noqa: S314 # a file that whoever runs this chose
    plain = {"xs:date": "date", "xs:dateTime": "datetime", "xs:time": "time", "xs:boolean": "boolean"}
    plain |= {"xs:gYear": "period", "xs:base64Binary": "base64", "xs:string": "0.."}
    tokens: dict[str, str] = {}
    for each in root.findall(XS + "simpleType"):
        rule, name = next(each.iter(XS + "restriction")), str(each.get("name"))
        listed = [str(code.get("value")) for code in rule.findall(XS + "enumeration")]
        if listed:
            put(name, "= " + " ".join(sorted(listed)))
            tokens[name] = name
        else:
            base, facets = str(rule.get("base")), facets_of(rule)
            decimal = base == "xs:decimal"
            own = decimal or (facets and base == "xs:string")
            tokens[name] = simple("Decimal" if decimal else "str", facets) if own else plain[base]
    for each in root.findall(XS + "complexType"):
        if each.get("name") == "Document":
            (top,) = each.iter(XS + "element")
            messages[path.stem] = f"{top.get('name')} {top.get('type')}"
        else:
            put(str(each.get("name")), complex_of(each, tokens))


def complex_of(kind: Tree.Element, tokens: dict[str, str]) -> str:
    extension = next(kind.iter(XS + "extension"), None)
    if extension is not None:
        own = [f"@{each.get('name')}={tokens[str(each.get('type'))]}" for each in extension.findall(XS + "attribute")]
        return f"$ {tokens[str(extension.get('base'))]} {' '.join(own)}"
    if next(kind.iter(XS + "any"), None) is not None:
        return "*"
    parts = []
    for each in kind.iter(XS + "element"):
        most = each.get("maxOccurs", "1")
        count = often(int(each.get("minOccurs", "1")), None if most == "unbounded" else int(most))
        parts.append(f"{each.get('name')}{count}={tokens.get(str(each.get('type')), each.get('type'))}")
    return f"{'|' if next(kind.iter(XS + 'choice'), None) is not None else ':'} {' '.join(parts)}"


def write() -> None:
    reached: set[str] = set()
    waiting = [row.split()[1] for row in messages.values()]
    while waiting:
        name = waiting.pop()
        if name in types and name not in reached:
            reached.add(name)
            waiting.extend(part.rsplit("=", 1)[-1] for part in types[name].split()[1:])
    ROOM.mkdir(exist_ok=True)
    (ROOM / "messages.txt").write_text("".join(f"{name} {row}\n" for name, row in sorted(messages.items())))
    (ROOM / "types.txt").write_text("".join(f"{name} {types[name]}\n" for name in sorted(reached)))
    (ROOM / "patterns.txt").write_text("".join(f"{name} {row}\n" for row, name in patterns.items()))


if __name__ == "__main__":
    read_models()
    for given in sys.argv[1:]:
        read_schema(Path(given))
    write()
