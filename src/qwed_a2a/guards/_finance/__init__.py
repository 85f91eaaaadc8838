"""Parts of the finance guard: invoice parser and check of extra fields. The entry point is `finance.py`."""
