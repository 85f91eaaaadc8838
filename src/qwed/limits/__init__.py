"""How often: sliding windows per key."""
