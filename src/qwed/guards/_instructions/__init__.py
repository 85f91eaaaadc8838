"""What `instructions.py` is made of."""
