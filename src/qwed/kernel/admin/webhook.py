"""Webhook of an organisation: its URL and the events it receives (ruling 4.10)."""

import secrets
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from qwed.guards.secrets import find_secrets
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import NOTICES, Actor, build_change, commit_change
from qwed.kernel.body_parsing import refuse_body
from qwed.kernel.services import Services
from qwed.model import ErrorCode, Event
from qwed.store.change_parts import Webhook, WebhookChanged

_FIELDS = ("url", "events")
SECRET_PREFIX = "qwed_hook_"  # noqa: S105 - the public part of every secret


class WebhookRequest(NamedTuple):
    """URL and events that an owner requests."""

    url: str
    events: tuple[str, ...]


def read_webhook_request(raw: Any) -> WebhookRequest | Problem:
    """Parse the URL and the events, or return the problem; whether the URL may be used is checked elsewhere."""
    refusal = refuse_body(raw, _FIELDS)
    if refusal is not None:
        return refusal
    if not isinstance(raw.get("url"), str):
        return problem(ErrorCode.MISSING_FIELD, "`url` is required and must be a string")
    if find_secrets(raw["url"]) or find_secrets(unquote(raw["url"])):
        message = "`url` carries a secret, which would be stored and shown: leave it out, notices are signed"
        return problem(ErrorCode.BAD_OPTION, message)
    requested = raw.get("events")
    events = list(NOTICES) if requested is None else requested
    if not isinstance(events, list) or not events or any(event not in NOTICES for event in events):
        return problem(ErrorCode.BAD_OPTION, f"`events` must be a list of {', '.join(NOTICES)}")
    return WebhookRequest(raw["url"], tuple(event for event in NOTICES if event in events))


async def set_webhook(request: WebhookRequest, actor: Actor, services: Services) -> Webhook | Problem:
    """Store the webhook with a new secret, which is shown once."""
    now = services.clock.now()
    webhook = Webhook(
        organisation_id=actor.organisation_id,
        url=request.url,
        events=request.events,
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
        content={"host": urlsplit(request.url).hostname, "events": list(request.events)},
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
