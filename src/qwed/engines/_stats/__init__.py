"""Implementation of the stats engine (`qwed.engines.stats`): file loading, claim grammar and queries."""
