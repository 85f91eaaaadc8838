"""Methods of A2A: parameters, results, and their names in both bindings."""

from enum import Enum
from typing import NamedTuple

from qwed_a2a.proxy import message_schema as schema


class _Row(NamedTuple):
    rpc: str
    params_type: type[schema.A2AStruct]
    result_type: type[schema.A2AStruct]
    streams: bool = False
    http_method: str = "GET"
    path: str = ""
    """Path of HTTP+JSON below the agent's address; `{id}` is the task id."""
    v0_3_name: str = ""
    """Name of the method in A2A 0.3."""


class A2AMethod(Enum):
    """Method of the protocol."""

    # fmt: off
    SEND = _Row("SendMessage", schema.SendMessage, schema.StreamResponse, False, "POST", "/message:send",
                "message/send")
    STREAM = _Row("SendStreamingMessage", schema.SendMessage, schema.StreamResponse, True, "POST", "/message:stream",
                  "message/stream")
    GET = _Row("GetTask", schema.GetTask, schema.Task, False, "GET", "/tasks/{id}", "tasks/get")
    LIST = _Row("ListTasks", schema.ListTasks, schema.TaskPage, False, "GET", "/tasks")
    CANCEL = _Row("CancelTask", schema.CancelTask, schema.Task, False, "POST", "/tasks/{id}:cancel", "tasks/cancel")
    SUBSCRIBE = _Row("SubscribeToTask", schema.SubscribeToTask, schema.StreamResponse, True, "POST",
                     "/tasks/{id}:subscribe", "tasks/resubscribe")
    CARD = _Row("GetExtendedAgentCard", schema.Params, schema.A2AStruct, False, "GET", "/extendedAgentCard",
                "agent/getAuthenticatedExtendedCard")
    # fmt: on
    PUSH = _Row("", schema.A2AStruct, schema.A2AStruct)
    """Methods for push notifications, which would bypass the proxy."""


_PUSH_RPC_VERBS = ("Create", "Get", "List", "Delete")
_PUSH_V0_3_VERBS = ("set", "get", "list", "delete")
METHOD_BY_RPC_NAME = {
    **{method.value.rpc: method for method in A2AMethod if method.value.rpc},
    **{f"{what}TaskPushNotificationConfig{'s' * (what == 'List')}": A2AMethod.PUSH for what in _PUSH_RPC_VERBS},
}
METHOD_BY_V0_3_NAME = {
    **{method.value.v0_3_name: method for method in A2AMethod if method.value.v0_3_name},
    **{f"tasks/pushNotificationConfig/{what}": A2AMethod.PUSH for what in _PUSH_V0_3_VERBS},
}
