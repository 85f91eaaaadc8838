"""Handlers of the organisation's webhook, which an owner configures (ruling 4.10)."""

from qwed.api.server.auth import OWNER, require_actor, require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.kernel.admin import webhook
from qwed.kernel.answer import Problem, problem
from qwed.kernel.views.agent_views import View
from qwed.model import ErrorCode
from qwed.model.clock import rfc3339
from qwed.store.change_parts import Webhook
from qwed.webhooks.url_policy import url_error


class WebhookView(View, frozen=True, kw_only=True):
    """Webhook and its delivery counters."""

    url: str
    events: list[str]
    changed_at: str
    waiting: int
    delivered: int
    given_up: int
    delivered_at: str | None
    last_error: str | None


class NewWebhookView(View, frozen=True, kw_only=True):
    """Webhook with the secret that signs its notices, shown once."""

    url: str
    events: list[str]
    changed_at: str
    secret: str


class RemovedView(View, frozen=True, kw_only=True):
    """Result of a removal."""

    removed: bool


async def put_webhook(request: RequestContext) -> Response:
    """Set the webhook; refuse a URL that may lead into a private network."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    settings = webhook.read_webhook_request(request.json())
    if isinstance(settings, Problem):
        return error_response(settings)
    refusal = url_error(settings.url, request.services.settings.webhook_allow_private)
    if refusal is not None:
        return error_response(problem(ErrorCode.BAD_OPTION, refusal))
    stored = await request.driver.run(webhook.set_webhook(settings, actor, request.services))
    if isinstance(stored, Problem):
        return error_response(stored)
    return json_response(
        NewWebhookView(
            url=stored.url, events=list(stored.events), changed_at=rfc3339(stored.changed_at), secret=stored.secret
        )
    )


async def get_webhook(request: RequestContext) -> Response:
    """Return the webhook and its delivery counters, without its secret."""
    key = require_key(request, OWNER)
    if isinstance(key, Problem):
        return error_response(key)
    webhook_row = await request.run_blocking(request.services.store.webhook_record, key.organisation_id)
    if webhook_row is None:
        return error_response(problem(ErrorCode.NOT_FOUND, "this organisation has no webhook"))
    return json_response(_webhook_view(webhook_row))


def _webhook_view(webhook_row: Webhook) -> WebhookView:
    return WebhookView(
        url=webhook_row.url,
        events=list(webhook_row.events),
        changed_at=rfc3339(webhook_row.changed_at),
        waiting=webhook_row.waiting,
        delivered=webhook_row.delivered,
        given_up=webhook_row.given_up,
        delivered_at=None if webhook_row.delivered_at is None else rfc3339(webhook_row.delivered_at),
        last_error=webhook_row.last_error,
    )


async def delete_webhook(request: RequestContext) -> Response:
    """Remove the webhook."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    removed = await request.driver.run(webhook.remove_webhook(actor, request.services))
    return error_response(removed) if isinstance(removed, Problem) else json_response(RemovedView(removed=removed))
