"""The A2A protocol 1.0 as JSON: what of it is understood, and therefore passes."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Name = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[^\x00-\x1f\x7f]*\Z")]
"""What something is called: nobody looks at it, so it is short and on one line."""
Mode = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[\w!#$&^.+*/;=, -]*\Z")]
"""A media type and its parameters, of which a program could not be spelt."""
Metadata = dict[str, Any]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Role(StrEnum):
    """Who speaks."""

    UNSPECIFIED = "ROLE_UNSPECIFIED"
    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class TaskState(StrEnum):
    """How far a task is."""

    UNSPECIFIED = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"


ON_ITS_WAY = frozenset({TaskState.UNSPECIFIED, TaskState.SUBMITTED, TaskState.WORKING})
"""After any other state no more of an artifact is to come for now."""


class Said(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whatever agents say to one another."""


class Part(Said, frozen=True, kw_only=True):
    """A piece of content: one of text, bytes, an address or JSON."""

    text: str | UnsetType = UNSET
    raw: bytes | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: Metadata | UnsetType = UNSET
    filename: str = ""
    media_type: str = ""

    def __post_init__(self) -> None:
        if sum(each is not UNSET for each in (self.text, self.raw, self.url, self.data)) > 1:
            raise ValueError("a part has one of `text`, `raw`, `url` and `data`")


class Message(Said, frozen=True, kw_only=True):
    """One turn of a conversation."""

    message_id: Name = ""
    context_id: Name = ""
    task_id: Name = ""
    role: Role = Role.UNSPECIFIED
    parts: tuple[Part, ...] = ()
    metadata: Metadata | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[Name, ...] = ()


class Artifact(Said, frozen=True, kw_only=True):
    """Something that a task brought forth."""

    artifact_id: Name = ""
    name: str = ""
    description: str = ""
    parts: tuple[Part, ...] = ()
    metadata: Metadata | UnsetType = UNSET
    extensions: tuple[str, ...] = ()


class TaskStatus(Said, frozen=True, kw_only=True):
    """How far a task is, and what its agent says to that."""

    state: TaskState = TaskState.UNSPECIFIED
    message: Message | UnsetType = UNSET
    timestamp: Moment | UnsetType = UNSET


class Task(Said, frozen=True, kw_only=True):
    """Work that an agent has taken on."""

    id: Name = ""
    context_id: Name = ""
    status: TaskStatus = TaskStatus()
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: Metadata | UnsetType = UNSET


class StatusUpdate(Said, frozen=True, kw_only=True):
    """A task is in another state."""

    task_id: Name = ""
    context_id: Name = ""
    status: TaskStatus = TaskStatus()
    metadata: Metadata | UnsetType = UNSET


class ArtifactUpdate(Said, frozen=True, kw_only=True):
    """A piece of an artifact."""

    task_id: Name = ""
    context_id: Name = ""
    artifact: Artifact = Artifact()
    append: bool = False
    last_chunk: bool = False
    metadata: Metadata | UnsetType = UNSET


class Configuration(Said, frozen=True, kw_only=True):
    """How the sender would like to be answered."""

    accepted_output_modes: Annotated[tuple[Mode, ...], msgspec.Meta(max_length=100)] = ()
    task_push_notification_config: Metadata | UnsetType = UNSET
    history_length: Count | UnsetType = UNSET
    return_immediately: bool = False


class SendMessage(Said, frozen=True, kw_only=True):
    """A message for the agent."""

    tenant: Name = ""
    message: Message
    configuration: Configuration | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class GetTask(Said, frozen=True, kw_only=True):
    """Which task is to be shown."""

    tenant: Name = ""
    id: Name
    history_length: Count | UnsetType = UNSET


class ListTasks(Said, frozen=True, kw_only=True):
    """Which tasks are to be shown."""

    tenant: Name = ""
    context_id: Name = ""
    status: TaskState = TaskState.UNSPECIFIED
    page_size: Count | UnsetType = UNSET
    page_token: Name = ""
    history_length: Count | UnsetType = UNSET
    status_timestamp_after: Moment | UnsetType = UNSET
    include_artifacts: bool | UnsetType = UNSET


class CancelTask(Said, frozen=True, kw_only=True):
    """Which task is to end."""

    tenant: Name = ""
    id: Name
    metadata: Metadata | UnsetType = UNSET


class SubscribeToTask(Said, frozen=True, kw_only=True):
    """Which task is to be watched."""

    tenant: Name = ""
    id: Name


class GetExtendedAgentCard(Said, frozen=True, kw_only=True):
    """Nothing more is said."""

    tenant: Name = ""


class PushConfig(Said, frozen=True, kw_only=True):
    """Whatever it says: push notifications would pass us by."""


class TaskPage(Said, frozen=True, kw_only=True):
    """Some of the tasks of an agent; all fields are written, as the protocol asks."""

    tasks: tuple[Task, ...] = ()
    next_page_token: Name = ""
    page_size: Count = 0
    total_size: Count = 0


class Event(Said, frozen=True, kw_only=True):
    """One thing that an agent says: a message, a task, or what became of one."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET
    status_update: StatusUpdate | UnsetType = UNSET
    artifact_update: ArtifactUpdate | UnsetType = UNSET

    def __post_init__(self) -> None:
        said = (self.task, self.message, self.status_update, self.artifact_update)
        if sum(each is not UNSET for each in said) != 1:
            raise ValueError("an answer is one of a task, a message or an update")


class Failure(msgspec.Struct, frozen=True):
    """An error of JSON-RPC, as far as it is looked at."""

    code: int


class Reply(msgspec.Struct, frozen=True):
    """An answer of JSON-RPC: `id` is ours, so only whether there is a result matters."""

    result: Any = UNSET
    error: Failure | UnsetType | None = UNSET


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request of JSON-RPC."""

    jsonrpc: Literal["2.0"]
    method: str
    id: str | int | None = None
    params: Any = UNSET
