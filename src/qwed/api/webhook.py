"""Ruling 4.10: the organisation's webhook, an owner's to set."""

from qwed.api.access import OWNER, require_actor, require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.answer import Problem, problem
from qwed.kernel.people import webhook
from qwed.kernel.views.agents import View
from qwed.store.parts import Webhook
from qwed.webhooks.address import refuse_url
from qwed.words import ErrorCode
from qwed.words.clock import rfc3339


class WebhookView(View, frozen=True, kw_only=True):
    """Where notices go, and how that goes."""

    url: str
    events: list[str]
    changed_at: str
    waiting: int
    delivered: int
    given_up: int
    delivered_at: str | None
    last_error: str | None


class NewWebhookView(View, frozen=True, kw_only=True):
    """A webhook as it was just set. The secret that signs its notices is shown this once."""

    url: str
    events: list[str]
    changed_at: str
    secret: str


class RemovedView(View, frozen=True, kw_only=True):
    """What was removed is gone."""

    removed: bool


async def put_webhook(call: Call) -> Response:
    """Set the webhook; a URL that may lead into our own network is refused."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    wish = webhook.read_wish(call.json())
    if isinstance(wish, Problem):
        return refused(wish)
    refusal = refuse_url(wish.url, call.services.settings.webhook_allow_private)
    if refusal is not None:
        return refused(problem(ErrorCode.BAD_OPTION, refusal))
    kept = await call.driver.drive(webhook.set_webhook(wish, actor, call.services))
    if isinstance(kept, Problem):
        return refused(kept)
    return ok(
        NewWebhookView(url=kept.url, events=list(kept.events), changed_at=rfc3339(kept.changed_at), secret=kept.secret)
    )


async def get_webhook(call: Call) -> Response:
    """The webhook and what became of its notices, without its secret."""
    key = require_key(call, OWNER)
    if isinstance(key, Problem):
        return refused(key)
    found = await call.look(call.services.store.webhook_record, key.organisation_id)
    if found is None:
        return refused(problem(ErrorCode.NOT_FOUND, "this organisation has no webhook"))
    return ok(_shown(found))


def _shown(found: Webhook) -> WebhookView:
    return WebhookView(
        url=found.url,
        events=list(found.events),
        changed_at=rfc3339(found.changed_at),
        waiting=found.waiting,
        delivered=found.delivered,
        given_up=found.given_up,
        delivered_at=None if found.delivered_at is None else rfc3339(found.delivered_at),
        last_error=found.last_error,
    )


async def delete_webhook(call: Call) -> Response:
    """Tell nobody any more."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    removed = await call.driver.drive(webhook.remove_webhook(actor, call.services))
    return refused(removed) if isinstance(removed, Problem) else ok(RemovedView(removed=removed))
