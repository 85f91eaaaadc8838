"""The map of the HTTP surface: one row per route, from which both the router and the API document are made."""

from qwed.api.routes import agents, engines, messages, node, people, record
from qwed.api.routes.row import Route

__all__ = ["ROUTES", "Route"]

ROUTES: tuple[Route, ...] = (
    *agents.ROUTES,
    *people.ROUTES,
    *engines.ROUTES,
    *messages.ROUTES,
    *record.ROUTES,
    *node.ROUTES,
)
