"""Cache of verification results by query and context.

A hit needs the same query and the same `CacheContext` in every field.
"""

from qwed_sdk.cache.cache_errors import CacheError
from qwed_sdk.cache.context import CacheContext
from qwed_sdk.cache.stats import CacheStats
from qwed_sdk.cache.verification import MAX_ENTRIES, TTL, VerificationCache

__all__ = ["MAX_ENTRIES", "TTL", "CacheContext", "CacheError", "CacheStats", "VerificationCache"]
