"""HTTP API.

`app.py` composes it, `routes/` maps paths to `handlers/`, `server/` speaks HTTP, `openapi/` describes the API.
"""
