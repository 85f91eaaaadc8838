"""Webhook of an organisation: its URL and the events it receives (ruling 4.10)."""

import secrets
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from msgspec import Meta

from qwed.domain.change_parts import Webhook, WebhookChanged
from qwed.guards.secrets import find_secrets
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import NOTICES, Actor, build_change, commit_change
from qwed.kernel.request_schema import FieldRule, RequestStruct
from qwed.kernel.services import Services
from qwed.model import ErrorCode, Event

SECRET_PREFIX = "qwed_hook_"  # noqa: S105 - the public part of every secret


_REQUIRED = "is required and must be a string"
_EVENTS = FieldRule(f"must be a list of {', '.join(NOTICES)}", ErrorCode.BAD_OPTION)


class WebhookRequest(RequestStruct):
    """URL and events of the webhook; without `events`, all of them."""

    url: Annotated[
        str,
        Meta(extra_json_schema={"minLength": 1, "maxLength": 2048}),
        FieldRule(_REQUIRED, ErrorCode.MISSING_FIELD, required=_REQUIRED),
    ]
    events: (
        Annotated[list[Literal["pending", "failed", "degraded", "suspended"]], Meta(min_length=1), _EVENTS] | None
    ) = None


def refuse_secret(url: str) -> Problem | None:
    """Return the problem with a URL that carries a secret, or None."""
    if not find_secrets(url) and not find_secrets(unquote(url)):
        return None
    message = "`url` carries a secret, which would be stored and shown: leave it out, notices are signed"
    return problem(ErrorCode.BAD_OPTION, message)


async def set_webhook(request: WebhookRequest, actor: Actor, services: Services) -> Webhook | Problem:
    """Store the webhook with a new secret, which is shown once."""
    now = services.clock.now()
    webhook = Webhook(
        organisation_id=actor.organisation_id,
        url=request.url,
        events=tuple(event for event in NOTICES if request.events is None or event in request.events),
        secret=SECRET_PREFIX + secrets.token_hex(32),
        changed_at=now,
    )
    change = build_change(
        Event.WEBHOOK_CHANGED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        about=actor.organisation_id,
        # Only the host: many receivers have a secret in the path, and the log is never erased.
        content={"host": urlsplit(request.url).hostname, "events": list(webhook.events)},
        parts=(WebhookChanged(actor.organisation_id, webhook),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else webhook


async def remove_webhook(actor: Actor, services: Services) -> bool | Problem:
    """Remove the webhook and its undelivered notices; return True."""
    if services.store.webhook(actor.organisation_id) is None:
        return problem(ErrorCode.NOT_FOUND, "this organisation has no webhook")
    change = build_change(
        Event.WEBHOOK_REMOVED,
        actor.actor_id,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=actor.organisation_id,
        parts=(WebhookChanged(actor.organisation_id, None),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else True
