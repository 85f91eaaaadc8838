"""The methods of A2A: what each takes, what it brings back, and how the two bindings spell it."""

from enum import Enum
from typing import NamedTuple

from qwed_a2a.proxy import terms


class _Row(NamedTuple):
    rpc: str
    takes: type[terms.Said]
    brings: type[terms.Said]
    streams: bool = False
    http: str = "GET"
    path: str = ""
    """Of HTTP+JSON, below the address of the agent; `{id}` is the task's."""
    old: str = ""
    """What it was called in 0.3."""


class Verb(Enum):
    """One row per method."""

    SEND = _Row("SendMessage", terms.SendMessage, terms.Event, False, "POST", "/message:send", "message/send")
    STREAM = _Row("SendStreamingMessage", terms.SendMessage, terms.Event, True, "POST", "/message:stream",
                  "message/stream")  # fmt: skip
    GET = _Row("GetTask", terms.GetTask, terms.Task, False, "GET", "/tasks/{id}", "tasks/get")
    LIST = _Row("ListTasks", terms.ListTasks, terms.TaskPage, False, "GET", "/tasks")
    CANCEL = _Row("CancelTask", terms.CancelTask, terms.Task, False, "POST", "/tasks/{id}:cancel", "tasks/cancel")
    SUBSCRIBE = _Row("SubscribeToTask", terms.SubscribeToTask, terms.Event, True, "POST", "/tasks/{id}:subscribe",
                     "tasks/resubscribe")  # fmt: skip
    CARD = _Row("GetExtendedAgentCard", terms.GetExtendedAgentCard, terms.Said, False, "GET", "/extendedAgentCard",
                "agent/getAuthenticatedExtendedCard")  # fmt: skip
    PUSH = _Row("", terms.PushConfig, terms.Said)
    """Whatever is done to the addresses to which an agent would tell its news, past us."""


_PUSHING = ("Create", "Get", "List", "Delete")
_PUSHED = ("set", "get", "list", "delete")
BY_RPC = {
    **{verb.value.rpc: verb for verb in Verb if verb.value.rpc},
    **{f"{what}TaskPushNotificationConfig{'s' * (what == 'List')}": Verb.PUSH for what in _PUSHING},
}
BY_OLD = {
    **{verb.value.old: verb for verb in Verb if verb.value.old},
    **{f"tasks/pushNotificationConfig/{what}": Verb.PUSH for what in _PUSHED},
}
