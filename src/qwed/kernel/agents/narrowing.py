"""Comparison of two states of an agent: which fields let it do more than before? (ruling 4.28)

A pure function. It answers "wider" wherever it cannot tell: an owner may make any change.
"""

from collections.abc import Callable, Collection
from typing import Any

from qwed.domain.agent import Agent, Permissions
from qwed.engines.protocol import DEFAULT_SENSITIVE_COLUMNS
from qwed.guards.path import PathLocation, resolve
from qwed.guards.tool_approval import case_key, fold_name
from qwed.kernel.agents.registration import COUNT_LIMITS, MONEY_LIMITS
from qwed.kernel.analysis.addresses import to_ascii
from qwed.kernel.tools import TOOLS
from qwed.model.tool_name import possible_tool_names, server_of, server_of_wildcard

Names = tuple[str, ...] | None


def narrows(before: Agent, after: Agent, registered: Collection[str] = (), max_steps: int = 0) -> bool:
    """Return True if the agent may do nothing after the change that it might not do before.

    `registered` are the organisation's own tools, and `max_steps` is the server's limit of a conversation.
    """
    return not wider_fields(before, after, registered, max_steps)


def wider_fields(before: Agent, after: Agent, registered: Collection[str] = (), max_steps: int = 0) -> tuple[str, ...]:
    """Return the changed fields that do not only take something away from the agent."""
    wider = [name for name in ("name", "description", "labels") if getattr(before, name) != getattr(after, name)]
    if after.steps_limit(max_steps) > before.steps_limit(max_steps):
        wider.append("max_conversation_steps")
    tools = frozenset(map(case_key, (*TOOLS, *registered)))
    for name in Permissions.__struct_fields__:
        old, new = _values(name, before.permissions, after.permissions)
        if old != new and not _narrows_permission(name, old, new, tools):
            wider.append(f"permissions.{name}")
    limits = {**MONEY_LIMITS, **COUNT_LIMITS}.items()
    wider += [f"budget.{name}" for name, field in limits if not _is_lower(*_values(field, before.limits, after.limits))]
    return tuple(wider)


def _values(field: str, before: Any, after: Any) -> tuple[Any, Any]:
    return getattr(before, field), getattr(after, field)


def _narrows_permission(name: str, old: Any, new: Any, tools: frozenset[str]) -> bool:
    if name == "allowed_tools":
        return _has_fewer_tools(old, new, tools)
    rule = _RULES.get(name)
    # A schema or a dialect is another reading of the same statements: neither is narrower.
    return rule is not None and rule(old, new)


def _is_lower(old: int | None, new: int | None) -> bool:
    return old is None or (new is not None and new <= old)


def _is_subset(old: Names, new: Names) -> bool:
    return old is None or (new is not None and set(new) <= set(old))


def _is_subset_of_few(old: Names, new: Names) -> bool:
    """Compare lists of which an absent one permits nothing."""
    return set(new or ()) <= set(old or ())


def _has_more_sensitive(old: Names, new: Names) -> bool:
    before, after = (DEFAULT_SENSITIVE_COLUMNS if names is None else names for names in (old, new))
    return set(before) <= set(after)


def _has_fewer_tools(old: Names, new: Names, tools: frozenset[str]) -> bool:
    if new is None:
        return old is None
    if old is None:
        # The list makes a tool known that would be unknown without it.
        return all(case_key(name) in tools for name in new)
    names, servers = frozenset(map(case_key, old)), set(filter(None, map(server_of_wildcard, old)))
    return all(case_key(name) in names or (server_of(name) or server_of_wildcard(name)) in servers for name in new)


def _blocks_more(old: tuple[str, ...], new: tuple[str, ...]) -> bool:
    blocked = frozenset(map(fold_name, new))
    servers = set(filter(None, map(server_of_wildcard, blocked)))
    return all(_is_still_blocked(fold_name(name), blocked, servers) for name in old)


def _is_still_blocked(name: str, blocked: frozenset[str], servers: set[str]) -> bool:
    if name in blocked:
        return True
    if server_of_wildcard(name) is not None:
        return False
    return not blocked.isdisjoint(possible_tool_names(name)) or server_of(name) in servers


def _has_deeper_paths(old: Names, new: Names) -> bool:
    if old is None or new is None:
        return old is None
    return all(path in old or resolve(path, old).location is PathLocation.INSIDE for path in new)


def _has_narrower_domains(old: Names, new: Names) -> bool:
    if old is None or new is None:
        return old is None
    roots = [to_ascii(domain) or domain.lower() for domain in old]
    domains = [to_ascii(domain) or domain.lower() for domain in new]
    return all(any(domain == root or domain.endswith(f".{root}") for root in roots) for domain in domains)


_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "allowed_engines": _is_subset,
    "blocked_tools": _blocks_more,
    "max_rows": _is_lower,
    "allowed_tables": _is_subset,
    "allowed_columns": _is_subset,
    "sensitive_columns": _has_more_sensitive,
    "allowed_functions": _is_subset_of_few,
    "allowed_paths": _has_deeper_paths,
    "allowed_domains": _has_narrower_domains,
    "tolerances": _is_subset_of_few,
}
