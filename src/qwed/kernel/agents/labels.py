"""Labels of an agent, such as `{"team": "support"}`: an owner's words, bounded, readable by policies (ruling 4.28)."""

import re
from typing import Annotated, Any

from msgspec import Meta

from qwed.guards.secrets import find_secrets
from qwed.kernel.request_schema import FieldRule, quoted

MAX_LABELS = 32
_NAME = r"[a-z][a-z0-9_-]{0,62}"
_VALUE = r"[A-Za-z0-9](?:[A-Za-z0-9 ._:/+-]{0,126}[A-Za-z0-9])?"
_is_name, _is_value = re.compile(_NAME).fullmatch, re.compile(_VALUE).fullmatch
_FORM = "a name is 1 to 63 of `a-z0-9_-` from a letter on, a value 1 to 128 of `A-Za-z0-9 ._:/+-`"


def refuse_labels(labels: dict[str, Any]) -> str | None:
    """Return the end of the message if the labels cannot be used, or None."""
    if len(labels) > MAX_LABELS:
        return f"must have at most {MAX_LABELS} entries"
    for name, value in labels.items():
        if _is_name(name) is None or _is_value(value) is None:
            return f": {quoted(name)} cannot be used: {_FORM}"
        if find_secrets(value) or find_secrets(name):
            return "carries a secret: leave it out"
    return None


_SCHEMA = Meta(extra_json_schema={"maxProperties": MAX_LABELS, "propertyNames": {"pattern": f"^{_NAME}$"}})
_Value = Annotated[str, Meta(extra_json_schema={"pattern": f"^{_VALUE}$"})]
_RULE = FieldRule("must be an object of texts", refuse=refuse_labels)
Labels = Annotated[dict[str, _Value], _SCHEMA, _RULE]
PatchedLabels = Annotated[dict[str, _Value | None], _SCHEMA, _RULE]
"""Labels to add or replace; null removes one."""
