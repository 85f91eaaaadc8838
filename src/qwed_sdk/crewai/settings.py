"""What `qwed_settings` and the keywords of a verified agent may say."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed_sdk.checkpoint import Asks, Checkpoint

_OF_THE_CHECKPOINT = frozenset(Asks.__annotations__)
_SWITCHES = frozenset({"require_attestation", "verify_all_tools"})
KNOWN = _OF_THE_CHECKPOINT | _SWITCHES


class Guard(NamedTuple):
    """What every tool of one agent is asked of; `attested` makes a permit without a signature none."""

    checkpoint: Checkpoint
    attested: bool


def guard_from(settings: Mapping[str, Any] | None, given: Mapping[str, Any]) -> Guard:
    """The guard that `qwed_settings` and the keywords that were given describe."""
    if settings is not None and not isinstance(settings, Mapping):
        raise TypeError("`qwed_settings` must be a mapping from the names of settings to their values")
    said = _together(settings or {}, {name: value for name, value in given.items() if value is not None})
    if said.get("verify_all_tools") is False:
        raise ValueError("`verify_all_tools` cannot be false: give tools that need no verification to another agent")
    options = dict(said.get("options") or {})
    if "require_attestation" in said:
        options["require_attestation"] = said["require_attestation"]
    of_the_checkpoint = {name: said[name] for name in _OF_THE_CHECKPOINT & said.keys()}
    checkpoint = Checkpoint(**of_the_checkpoint | ({"options": options} if options else {}))
    return Guard(checkpoint, bool(options.get("require_attestation")))


def _together(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(settings.keys() - KNOWN)
    if unknown:
        raise ValueError(f"unknown setting `{unknown[0]}` in qwed_settings: known are {', '.join(sorted(KNOWN))}")
    twice = sorted(settings.keys() & given.keys())
    if twice:
        raise ValueError(f"`{twice[0]}` is given twice: in qwed_settings and as a keyword")
    said = {**settings, **given}
    for name in sorted(_SWITCHES & said.keys()):
        if not isinstance(said[name], bool):
            raise ValueError(f"`{name}` must be True or False")
    return said
