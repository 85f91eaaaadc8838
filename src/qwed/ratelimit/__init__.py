"""Sliding-window rate limits per key, in memory or in Redis. A limiter that cannot count raises, and the request is
refused."""
