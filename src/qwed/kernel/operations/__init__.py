"""Table of the operations that need no transport; those of the HTTP server alone are added in `qwed.api.routes`."""

from types import ModuleType

from qwed.kernel.operations import admin_operations, agent_operations, audit_operations, policy_operations
from qwed.kernel.operations.operation import Operation


def operations_in(*modules: ModuleType) -> tuple[Operation, ...]:
    """Return the operations that modules define."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Operation))


OPERATIONS = operations_in(agent_operations, admin_operations, policy_operations, audit_operations)
