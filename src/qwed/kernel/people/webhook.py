"""Ruling 4.10: where an organisation wants to be told, and of what."""

import secrets
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from qwed.guards.secrets import find_secrets
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import NOTICES, Actor, change_of, keep
from qwed.kernel.services import Services
from qwed.store.parts import Webhook, WebhookChanged
from qwed.words import ErrorCode, Event

_FIELDS = ("url", "events")
SECRET_PREFIX = "qwed_hook_"  # noqa: S105 - the public part of every secret


class Wish(NamedTuple):
    """What an owner asks for."""

    url: str
    events: tuple[str, ...]


def read_wish(raw: Any) -> Wish | Problem:
    """The URL and the events, or what is wrong with them; whether the URL may be used is asked elsewhere."""
    wrong = refuse_body(raw, _FIELDS)
    if wrong is not None:
        return wrong
    if not isinstance(raw.get("url"), str):
        return problem(ErrorCode.MISSING_FIELD, "`url` is required and must be a string")
    if find_secrets(raw["url"]) or find_secrets(unquote(raw["url"])):
        message = "`url` carries a secret, which would be kept and shown with it: leave it out, notices are signed"
        return problem(ErrorCode.BAD_OPTION, message)
    given = raw.get("events")
    events = list(NOTICES) if given is None else given
    if not isinstance(events, list) or not events or any(event not in NOTICES for event in events):
        return problem(ErrorCode.BAD_OPTION, f"`events` must be a list of {', '.join(NOTICES)}")
    return Wish(raw["url"], tuple(event for event in NOTICES if event in events))


async def set_webhook(wish: Wish, actor: Actor, services: Services) -> Webhook | Problem:
    """The webhook with a new secret, which is shown once."""
    now = services.clock.now()
    webhook = Webhook(
        organisation_id=actor.organisation_id,
        url=wish.url,
        events=wish.events,
        secret=SECRET_PREFIX + secrets.token_hex(32),
        changed_at=now,
    )
    change = change_of(
        Event.WEBHOOK_CHANGED,
        actor.by,
        actor.organisation_id,
        now,
        services,
        about=actor.organisation_id,
        # The host alone: many receivers keep a secret in the path, and the log forgets nothing.
        said={"host": urlsplit(wish.url).hostname, "events": list(wish.events)},
        parts=(WebhookChanged(actor.organisation_id, webhook),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else webhook


async def remove_webhook(actor: Actor, services: Services) -> bool | Problem:
    """Tell nobody any more, and forget what was still to be told; true where there was a webhook."""
    if services.store.webhook(actor.organisation_id) is None:
        return problem(ErrorCode.NOT_FOUND, "this organisation has no webhook")
    change = change_of(
        Event.WEBHOOK_REMOVED,
        actor.by,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=actor.organisation_id,
        parts=(WebhookChanged(actor.organisation_id, None),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else True
