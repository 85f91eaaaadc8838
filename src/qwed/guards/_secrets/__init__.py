"""Parts of the secrets guard: what secrets look like, and what they are called. `secrets.py` is the door."""
