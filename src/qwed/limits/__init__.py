"""How often: sliding windows per key. A limiter that cannot count raises, and nothing is let through."""
