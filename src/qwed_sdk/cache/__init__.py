"""A context-bound cache of verification results.

A hit needs the same query and the same `CacheContext` in every field; nothing is ever answered by the query alone.
"""

from qwed_sdk.cache.context import CacheContext
from qwed_sdk.cache.errors import CacheError
from qwed_sdk.cache.stats import CacheStats
from qwed_sdk.cache.verification import MAX_ENTRIES, TTL, VerificationCache

__all__ = ["MAX_ENTRIES", "TTL", "CacheContext", "CacheError", "CacheStats", "VerificationCache"]
