"""Readers of the files in deploy/."""

import json
import re
from typing import Any

import yaml

from tests.docs.pages import ROOT

DEPLOY = ROOT / "deploy"
FILES = sorted(file for file in DEPLOY.rglob("*") if file.is_file() and "secrets" not in file.parts[-2:-1])


class _Once(yaml.SafeLoader):
    """YAML loader that refuses duplicate keys, of which the last would silently win."""


def _mapping(loader: _Once, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"a key stands twice: {node.start_mark}"
    return dict(zip(keys, (loader.construct_object(value, deep=True) for _, value in node.value), strict=True))


_Once.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def documents(name: str) -> list[Any]:
    """Return the documents of a YAML file."""
    return list(yaml.load_all((DEPLOY / name).read_text(), _Once))


def document(name: str) -> Any:
    [only] = documents(name)
    return only


def dashboard() -> Any:
    return json.loads((DEPLOY / "grafana" / "qwed.json").read_text())


Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1}
WHOLE: Schema = {"type": "integer"}
TRUTH: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT, "minItems": 1}
WORDS: Schema = {"type": "object", "additionalProperties": TEXT}
DURATION: Schema = {"type": "string", "pattern": r"^\d+(ms|s|m|h)$"}


def record(required: str = "", /, **members: Schema) -> Schema:
    """Return a schema of an object with exactly these members."""
    shape = {"type": "object", "properties": members, "additionalProperties": False}
    return shape | ({"required": required.split()} if required else {})


def several(item: Schema) -> Schema:
    return {"type": "array", "items": item, "minItems": 1}


def mapped(item: Schema) -> Schema:
    return {"type": "object", "additionalProperties": item, "minProperties": 1}


def dockerfile() -> list[tuple[str, str]]:
    """Return the instructions, each on one line, without comments."""
    text = re.sub(r"(?m)^#.*\n", "", (DEPLOY / "Dockerfile").read_text()).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in text.splitlines()) if name]
