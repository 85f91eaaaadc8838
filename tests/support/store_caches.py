"""What a store has in memory, for the tests that it is bounded. The one place that looks inside."""

from typing import Any


def cached_conversations(store: Any) -> int:
    """Return how many conversations are in memory."""
    return len(_state_of(store).histories)


def cached_chains(store: Any) -> int:
    """Return how many chains of attestations are in memory."""
    return len((store._in_flight if store.is_shared else _state_of(store))._chains)


def cached_claims(store: Any) -> int:
    """Return how many one-time events are in memory."""
    return len(_entities_of(store)._claimed)


def cached_entities(store: Any) -> tuple[int, int]:
    """Return how many agents and keys are in memory."""
    entities = _entities_of(store)
    return len(entities.agents), len(entities.key_rows)


def cached_missing_entities(store: Any) -> int:
    """Return how many names without an entity a PostgreSQL store has in memory."""
    return len(_entities_of(store)._missing)


def forget_entities(store: Any) -> None:
    """Drop every cached entity."""
    _entities_of(store).clear()


def cached_buckets(store: Any) -> int:
    """Return how many token buckets a PostgreSQL store has in memory."""
    return len(store._token_buckets._seen)


def _state_of(store: Any) -> Any:
    return store._state


def _entities_of(store: Any) -> Any:
    return store._entities
