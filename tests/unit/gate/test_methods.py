"""A Gate has the methods of the client (DESIGN 2)."""

from qwed.gate import Gate
from qwed_sdk import QWEDClient

NOT_IN_PROCESS = {
    "run": "drives a verb of the client itself",
    "health": "there is no server to ask",
    "ready": "there is no server to ask",
    "get_jwks": "`services.signer.keyring.public_jwks()`",
    "create_organisation": "a Gate is the owner of one organisation",
    "create_key": "keys are for HTTP",
    "change_key_groups": "keys are for HTTP",
    "list_keys": "keys are for HTTP",
    "get_own_key": "keys are for HTTP",
    "revoke_key": "keys are for HTTP",
    "intercept": "a higher package verifies messages: `qwed_a2a.service.InterceptorService(gate.services).intercept`",
    "a2a_health": "there is no server to ask",
    "a2a_metrics": "a higher package verifies messages: `qwed_a2a.service.InterceptorService.metrics_of`",
    "events": "`audit_entries` reads on from where it was",
    "set_webhook": "in process, no HTTP notification is needed",
    "get_webhook": "in process, no HTTP notification is needed",
    "delete_webhook": "in process, no HTTP notification is needed",
}


def verbs_of(door: type) -> set[str]:
    return {name for name in dir(door) if not name.startswith("_") and callable(getattr(door, name))}


def test_every_verb_of_the_client_is_there_or_says_why_not() -> None:
    assert verbs_of(QWEDClient) - verbs_of(Gate) == set(NOT_IN_PROCESS)
