"""Schema of the A2A protocol 1.0; only members in it are forwarded."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Name = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
"""Name or id: no guard checks it, so it is short and on one line."""
Mode = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[\w!#$&^.+*/;=, -]*\Z")]
"""Media type with parameters, in characters that no program can be written in."""
Metadata = dict[str, Any]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Role(StrEnum):
    """Author of a message."""

    UNSPECIFIED = "ROLE_UNSPECIFIED"
    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class TaskState(StrEnum):
    """State of a task."""

    UNSPECIFIED = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"


UNFINISHED_STATES = frozenset({TaskState.UNSPECIFIED, TaskState.SUBMITTED, TaskState.WORKING})
"""States in which more of an artifact may follow."""


class A2AStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all protocol objects."""


class A2APart(A2AStruct, frozen=True, kw_only=True):
    """Piece of content: one of text, bytes, a URL or JSON."""

    text: str | UnsetType = UNSET
    raw: bytes | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: Metadata | UnsetType = UNSET
    filename: str = ""
    media_type: str = ""

    def __post_init__(self) -> None:
        if sum(value is not UNSET for value in (self.text, self.raw, self.url, self.data)) > 1:
            raise ValueError("a part has one of `text`, `raw`, `url` and `data`")


class A2AMessage(A2AStruct, frozen=True, kw_only=True):
    """One message of a conversation."""

    message_id: Name = ""
    context_id: Name = ""
    task_id: Name = ""
    role: Role = Role.UNSPECIFIED
    parts: tuple[A2APart, ...] = ()
    metadata: Metadata | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[Name, ...] = ()


class Artifact(A2AStruct, frozen=True, kw_only=True):
    """Result of a task."""

    artifact_id: Name = ""
    name: str = ""
    description: str = ""
    parts: tuple[A2APart, ...] = ()
    metadata: Metadata | UnsetType = UNSET
    extensions: tuple[str, ...] = ()


class TaskStatus(A2AStruct, frozen=True, kw_only=True):
    """State of a task, and the agent's message about it."""

    state: TaskState = TaskState.UNSPECIFIED
    message: A2AMessage | UnsetType = UNSET
    timestamp: Moment | UnsetType = UNSET


class Task(A2AStruct, frozen=True, kw_only=True):
    """Work that an agent has accepted."""

    id: Name = ""
    context_id: Name = ""
    status: TaskStatus = TaskStatus()
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[A2AMessage, ...] = ()
    metadata: Metadata | UnsetType = UNSET


class TaskUpdate(A2AStruct, frozen=True, kw_only=True):
    """Event about a task."""

    task_id: Name = ""
    context_id: Name = ""
    metadata: Metadata | UnsetType = UNSET


class StatusUpdate(TaskUpdate, frozen=True, kw_only=True):
    """Change of a task's state."""

    status: TaskStatus = TaskStatus()


class ArtifactUpdate(TaskUpdate, frozen=True, kw_only=True):
    """Chunk of an artifact."""

    artifact: Artifact = Artifact()
    append: bool = False
    last_chunk: bool = False


class Configuration(A2AStruct, frozen=True, kw_only=True):
    """Options of the sender for the answer."""

    accepted_output_modes: Annotated[tuple[Mode, ...], msgspec.Meta(max_length=100)] = ()
    task_push_notification_config: Metadata | UnsetType = UNSET
    history_length: Count | UnsetType = UNSET
    return_immediately: bool = False


class Params(A2AStruct, frozen=True, kw_only=True):
    """Parameters of every method, and all those of reading the extended card."""

    tenant: Name = ""


class SendMessage(Params, frozen=True, kw_only=True):
    """Parameters for sending a message."""

    message: A2AMessage
    configuration: Configuration | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class SubscribeToTask(Params, frozen=True, kw_only=True):
    """Parameters for watching a task."""

    id: Name


class GetTask(SubscribeToTask, frozen=True, kw_only=True):
    """Parameters for reading a task."""

    history_length: Count | UnsetType = UNSET


class CancelTask(SubscribeToTask, frozen=True, kw_only=True):
    """Parameters for cancelling a task."""

    metadata: Metadata | UnsetType = UNSET


class ListTasks(Params, frozen=True, kw_only=True):
    """Parameters for listing tasks."""

    context_id: Name = ""
    status: TaskState = TaskState.UNSPECIFIED
    page_size: Count | UnsetType = UNSET
    page_token: Name = ""
    history_length: Count | UnsetType = UNSET
    status_timestamp_after: Moment | UnsetType = UNSET
    include_artifacts: bool | UnsetType = UNSET


class TaskPage(A2AStruct, frozen=True, kw_only=True):
    """Page of tasks; the protocol requires all fields."""

    tasks: tuple[Task, ...] = ()
    next_page_token: Name = ""
    page_size: Count = 0
    total_size: Count = 0


class StreamResponse(A2AStruct, frozen=True, kw_only=True):
    """Answer or event of an agent: a message, a task, or an update of one."""

    task: Task | UnsetType = UNSET
    message: A2AMessage | UnsetType = UNSET
    status_update: StatusUpdate | UnsetType = UNSET
    artifact_update: ArtifactUpdate | UnsetType = UNSET

    def __post_init__(self) -> None:
        members = (self.task, self.message, self.status_update, self.artifact_update)
        if sum(member is not UNSET for member in members) != 1:
            raise ValueError("an answer is one of a task, a message or an update")


class JsonRpcError(msgspec.Struct, frozen=True):
    """JSON-RPC error, without members that are not used."""

    code: int


class JsonRpcResponse(msgspec.Struct, frozen=True):
    """JSON-RPC response; its `id` is ours and not checked."""

    result: Any = UNSET
    error: JsonRpcError | UnsetType | None = UNSET


class JsonRpcRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """JSON-RPC request."""

    jsonrpc: Literal["2.0"]
    method: str
    id: str | int | None = None
    params: Any = UNSET
