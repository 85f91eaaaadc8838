"""Operation that sets the webhook, whose URL must not lead into a private network (ruling 4.10)."""

from qwed.kernel.admin import webhook
from qwed.kernel.answer import Problem, problem
from qwed.kernel.operations.operation import OWNER, Call, E, operation
from qwed.kernel.views.agent_views import View
from qwed.model.clock import rfc3339
from qwed.model.endpoints import Endpoint
from qwed.webhooks.url_policy import url_error


class NewWebhookView(View, frozen=True, kw_only=True):
    """Webhook with the secret that signs its notices, shown once."""

    url: str
    events: list[str]
    changed_at: str
    secret: str


@operation(Endpoint.PUT_WEBHOOK, "Set the webhook", roles=OWNER, errors=(E.BAD_OPTION, E.CONFLICT))
async def put_webhook(call: Call, request: webhook.WebhookRequest) -> NewWebhookView | Problem:
    """Set the webhook; refuse a URL that may lead into a private network."""
    refusal = webhook.refuse_secret(request.url)
    if refusal is not None:
        return refusal
    rejection = url_error(request.url, call.services.settings.webhook_allow_private)
    if rejection is not None:
        return problem(E.BAD_OPTION, rejection)
    stored = await webhook.set_webhook(request, call.actor, call.services)
    if isinstance(stored, Problem):
        return stored
    return NewWebhookView(
        url=stored.url, events=list(stored.events), changed_at=rfc3339(stored.changed_at), secret=stored.secret
    )
