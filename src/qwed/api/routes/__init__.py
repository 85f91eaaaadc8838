"""Route table, from which the router and the OpenAPI document are built."""

from qwed.api.routes import a2a_routes, admin_routes, agent_routes, audit_routes, engine_routes, system_routes
from qwed.api.routes.route import Route

__all__ = ["ROUTES", "Route"]

ROUTES: tuple[Route, ...] = (
    *agent_routes.ROUTES,
    *admin_routes.ROUTES,
    *engine_routes.ROUTES,
    *a2a_routes.ROUTES,
    *audit_routes.ROUTES,
    *system_routes.ROUTES,
)
