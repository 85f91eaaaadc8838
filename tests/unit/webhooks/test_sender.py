"""Delivery attempts against real receivers: what counts as delivered, and how long a receiver can hold one."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from qwed.http_client.dns import NameResolver
from qwed.store.protocol import Delivery
from qwed.webhooks.sender import MAX_LINE_BYTES, TIMEOUT_SECONDS, Sender
from qwed.webhooks.signature import verify
from tests.support.webhook_receivers import (
    LOOPBACK,
    LOOPBACK_6,
    PATIENCE,
    Behaviour,
    LocalCertificateAuthority,
    ReceiverConnection,
    WebhookReceiver,
    answering,
    dripping,
    endless,
    redirecting,
    saying,
    saying_then_silent,
    silent,
    unaccepted_port,
    unused_port,
)

NOW = 1_790_000_000.75
NAME = "hooks.example.com"
SECRET = "whsec_test"
BODY = '{"id":"ntc_1","event":"pending","at":"2026-11-15T00:00:00Z","principal_id":"J\u00fcrgen"}'
SHORT = 0.4
"""Timeout for receivers that use up the time."""
LATE = "the receiver did not answer in time"


@pytest.fixture(scope="module")
def authority() -> LocalCertificateAuthority:
    return LocalCertificateAuthority()


@pytest.fixture(scope="module")
def serving(authority: LocalCertificateAuthority) -> ssl.SSLContext:
    return authority.server_context([NAME, "localhost", LOOPBACK, LOOPBACK_6])


Open = Callable[..., WebhookReceiver]


@pytest.fixture
def receiver(serving: ssl.SSLContext) -> Iterator[Open]:
    """Open receivers, and close them after the test."""
    opened: list[WebhookReceiver] = []

    def open_one(behaviour: Behaviour, context: ssl.SSLContext | None = serving, **how: Any) -> WebhookReceiver:
        opened.append(WebhookReceiver(behaviour, context, **how))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def delivery(url: str, body: str = BODY) -> Delivery:
    return Delivery("ntc_1", "org_1", url, SECRET, "pending", body, NOW, 0)


def sent(authority: LocalCertificateAuthority, url: str, body: str = BODY, **how: Any) -> str | None:
    """Return the outcome of one attempt; private addresses are allowed, because all receivers here have one."""
    sender = Sender(**{"allow_private": True, "context": authority.client_context(), **how})
    return asyncio.run(sender.send(delivery(url, body), NOW))


def leading_to(*addresses: str) -> Callable[[str, int], Any]:
    """Return a resolver with these addresses for every name, which records its lookups."""

    async def resolve_name(host: str, port: int) -> Sequence[str]:
        lookups.append((host, port))
        return addresses

    lookups: list[tuple[str, int]] = []
    resolve_name.lookups = lookups  # type: ignore[attr-defined]
    return resolve_name


def test_a_notice_is_posted_as_it_is_with_a_signature_its_receiver_can_verify(authority, receiver):
    there = receiver(answering(200))
    assert sent(authority, there.url("/notices?team=a%20b")) is None
    heard = there.next()
    assert heard.line == "POST /notices?team=a%20b HTTP/1.1"
    assert heard.body == BODY.encode()
    assert verify(SECRET, heard.headers.pop("qwed-signature"), heard.body, NOW, 1)
    assert heard.headers == {
        "host": f"{LOOPBACK}:{there.port}",
        "content-type": "application/json",
        "content-length": str(len(BODY.encode())),
        "connection": "close",
        "user-agent": "qwed",
        "qwed-event": "pending",
        "qwed-notice": "ntc_1",
    }


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_success_is_a_delivery(authority, receiver, status):
    assert sent(authority, receiver(answering(status)).url()) is None


@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500, 503, 599])
def test_every_other_answer_is_a_failure_that_says_the_status_and_nothing_else(authority, receiver, status):
    assert sent(authority, receiver(answering(status)).url()) == f"the receiver answered {status}"


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(authority, receiver, status):
    elsewhere = receiver(answering(200))
    there = receiver(redirecting(status, elsewhere.url()))
    assert sent(authority, there.url()) == f"the receiver answered {status}: redirects are not followed"
    assert elsewhere.connections == 0


def test_an_address_of_ipv6_is_connected_to(authority, receiver):
    there = receiver(answering(200), host=LOOPBACK_6)
    assert sent(authority, there.url()) is None
    assert there.next().headers["host"] == f"[::1]:{there.port}"


def test_plain_http_is_spoken_where_private_receivers_are_allowed(authority, receiver):
    there = receiver(answering(204), None)
    assert sent(authority, there.url(scheme="http")) is None
    refusal = sent(authority, there.url(scheme="http"), allow_private=False)
    assert refusal is not None
    assert "https" in refusal
    assert there.connections == 1


def test_a_name_is_asked_for_once_and_the_answer_is_what_is_connected_to(authority, receiver):
    there = receiver(answering(200))
    names = leading_to(LOOPBACK)
    assert sent(authority, there.url(host=NAME), resolve_name=names) is None
    assert names.lookups == [(NAME, there.port)]
    assert there.next().headers["host"] == f"{NAME}:{there.port}"


def test_a_name_that_changes_its_answer_gains_nothing(authority, receiver, monkeypatch):
    """DNS rebinding: the address that was checked is the one that is used; the name is resolved once."""
    there, elsewhere = receiver(answering(200)), receiver(answering(200), host=LOOPBACK_6)
    answers = [[LOOPBACK], [LOOPBACK_6], [LOOPBACK_6]]

    async def rebinding(host: str, port: int) -> Sequence[str]:
        return answers.pop(0)

    def never(*_args: object, **_named: object) -> None:
        raise AssertionError("the system was asked")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    assert sent(authority, there.url(host=NAME), resolve_name=rebinding) is None
    assert answers == [[LOOPBACK_6], [LOOPBACK_6]]
    assert (there.connections, elsewhere.connections) == (1, 0)


def test_a_name_that_turns_private_is_refused_at_the_next_delivery(authority, receiver):
    there = receiver(answering(200))
    refusal = sent(authority, there.url(host=NAME), resolve_name=leading_to(LOOPBACK), allow_private=False)
    assert refusal == "the host name resolves to an address that is loopback"
    assert there.connections == 0


@pytest.mark.parametrize(
    "bad", [LOOPBACK, "::1", "10.0.0.1", "169.254.169.254", "fe80::1%eth0", "::ffff:127.0.0.1", "?"]
)
def test_one_private_address_among_public_ones_spoils_the_name(authority, receiver, bad):
    there = receiver(answering(200))
    names = leading_to("93.184.215.14", bad, "1.1.1.1")
    refusal = sent(authority, there.url(host=NAME), resolve_name=names, allow_private=False)
    assert refusal is not None
    assert refusal.startswith("the host name resolves to an address that is ")
    assert there.connections == 0


def test_a_metadata_service_is_refused_even_where_private_receivers_are_allowed(authority):
    names = leading_to("169.254.169.254")
    refusal = sent(authority, f"https://{NAME}/", resolve_name=names)
    assert refusal == "the host name resolves to an address that is a cloud's metadata service"


def test_the_next_address_is_tried_where_the_first_refuses(authority, receiver):
    listening = receiver(answering(200), host=LOOPBACK_6, port=unused_port())
    assert sent(authority, listening.url(host=NAME), resolve_name=leading_to(LOOPBACK, LOOPBACK_6)) is None


def test_the_next_address_is_tried_where_the_first_is_deaf(authority):
    with unaccepted_port() as port:
        # Nothing listens on ::1, so the attempt ends at the last address.
        outcome = sent(authority, f"https://{NAME}:{port}/", resolve_name=leading_to(LOOPBACK, LOOPBACK_6), seconds=1.0)
    assert outcome == "the connection was refused"


@pytest.mark.parametrize("failure", [OSError("no such name"), UnicodeError("label too long")])
def test_a_name_that_is_not_found_is_a_failure(authority, failure):
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise failure

    assert sent(authority, f"https://{NAME}/", resolve_name=unknown) == "the host name was not found"


def test_a_name_without_addresses_is_not_found(authority):
    assert sent(authority, f"https://{NAME}/", resolve_name=leading_to()) == "the host name was not found"


def test_a_lookup_that_never_answers_uses_up_the_time_and_no_more(authority):
    async def hanging(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    assert sent(authority, f"https://{NAME}/", resolve_name=hanging, seconds=SHORT) == LATE


def test_a_name_is_looked_up_in_a_thread_of_its_own(authority, receiver):
    there = receiver(answering(200))
    names = NameResolver(lambda host, port: [LOOPBACK] if (host, port) == ("localhost", there.port) else [])
    assert sent(authority, there.url(host="localhost"), resolve_name=names) is None


def test_a_closed_port_is_a_failure(authority):
    assert sent(authority, f"https://{LOOPBACK}:{unused_port()}/") == "the connection was refused"


def test_a_host_that_never_begins_tls_is_left_in_time(authority):
    with unaccepted_port() as port:
        assert sent(authority, f"https://{LOOPBACK}:{port}/", seconds=SHORT) == LATE


CERTIFICATE = "the receiver's certificate is not valid for its host"


def test_a_certificate_for_another_name_is_refused(authority, receiver):
    there = receiver(answering(200), authority.server_context(["other.example.com"]))
    assert sent(authority, there.url()) == CERTIFICATE
    assert sent(authority, there.url(host=NAME), resolve_name=leading_to(LOOPBACK)) == CERTIFICATE
    assert there.heard.empty()


def test_it_is_the_name_that_a_certificate_must_be_for_and_not_the_address(authority, receiver):
    by_name, by_address = (receiver(answering(200), authority.server_context([what])) for what in (NAME, LOOPBACK))
    assert sent(authority, by_name.url(host=NAME), resolve_name=leading_to(LOOPBACK)) is None
    assert sent(authority, by_address.url(host=NAME), resolve_name=leading_to(LOOPBACK)) == CERTIFICATE


def test_a_certificate_of_an_unknown_authority_is_refused(authority, receiver):
    there = receiver(answering(200), LocalCertificateAuthority().server_context([LOOPBACK]))
    assert sent(authority, there.url()) == CERTIFICATE


def test_a_certificate_that_is_over_is_refused(authority, receiver):
    there = receiver(answering(200), authority.server_context([LOOPBACK], days=-1))
    assert sent(authority, there.url()) == CERTIFICATE


def test_without_a_context_the_authorities_of_the_system_decide(receiver):
    sender = Sender(allow_private=True)
    there = receiver(answering(200))
    assert asyncio.run(sender.send(delivery(there.url()), NOW)) == CERTIFICATE
    assert (sender.seconds, sender.context.verify_mode, sender.context.check_hostname) == (5.0, ssl.CERT_REQUIRED, True)
    assert TIMEOUT_SECONDS == 5.0


@pytest.mark.parametrize("greeting", ["HTTP/1.1 200 OK\r\n\r\n", "220 mail.example.com ESMTP\r\n"])
def test_a_receiver_that_speaks_plain_text_where_tls_is_due_is_a_failure(authority, receiver, greeting):
    there = receiver(silent, None, greeting=greeting)
    assert sent(authority, there.url()) == "the TLS connection failed"
    assert there.heard.empty()


def test_a_receiver_that_never_answers_is_left_in_time(authority, receiver):
    there = receiver(silent)
    assert sent(authority, there.url(), seconds=SHORT) == LATE


@pytest.mark.parametrize("text", ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n" + "x: y\r\n" * 20])
def test_a_receiver_that_drips_is_left_in_time(authority, receiver, text):
    there = receiver(dripping(text, SHORT / 8))
    assert sent(authority, there.url(), seconds=SHORT) == LATE


def test_a_receiver_that_closes_without_a_word_is_a_failure(authority, receiver):
    assert sent(authority, receiver(saying()).url()) == "the connection failed"


@pytest.mark.parametrize(
    "text",
    [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "220 mail.example.com ESMTP\r\n",
        "HTTP/1.1 2xx OK\r\n\r\n",
        "HTTP/1.1 0200 OK\r\n\r\n",
        "HTTP/1.1 20\r\n\r\n",
        "HTTP/1.1 999 What\r\n\r\n",
        "HTTP/1.1 \u0662\u0660\u0660 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        " HTTP/1.1 200 OK\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n",
        "HTTP/1.1 200 " + "O" * 2 * MAX_LINE_BYTES + "\r\n\r\n",
        "HTTP/1.1 200 OK",
        "200 OK\r\n",
        "\x00\r\n",
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_what_is_not_http_is_a_failure_and_nothing_of_it_is_repeated(authority, receiver, text):
    assert sent(authority, receiver(saying(text)).url()) == "the receiver did not answer in HTTP"


@pytest.mark.parametrize(
    "text",
    [
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 200 \r\n\r\n",
        "HTTP/1.1 204 No Content\n\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n",
    ],
    ids=ascii,
)
def test_the_ways_in_which_receivers_say_yes(authority, receiver, text):
    assert sent(authority, receiver(saying(text)).url()) is None


def test_a_failure_after_an_interim_answer_is_a_failure(authority, receiver):
    there = receiver(saying("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\n\r\n"))
    assert sent(authority, there.url()) == "the receiver answered 500"


@pytest.mark.parametrize(
    ("start", "more"),
    [
        ("HTTP/1.1 103 Early Hints\r\n", "x: y\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
        ("HTTP/1.1 200 ", "O" * 4096),
    ],
)
def test_an_answer_that_never_comes_to_its_status_is_not_read_for_long(authority, receiver, start, more):
    assert sent(authority, receiver(endless(start, more)).url()) == "the receiver did not answer in HTTP"


@pytest.mark.parametrize(("status", "outcome"), [(200, None), (500, "the receiver answered 500")])
@pytest.mark.parametrize("head", ["content-length: 1000000000000\r\n\r\n", "", "transfer-encoding: chunked\r\n\r\n"])
def test_an_endless_body_changes_nothing_about_the_status(authority, receiver, status, outcome, head):
    there = receiver(endless(f"HTTP/1.1 {status} So\r\n{head}", "x-more: " + "x" * 5000 + "\r\n"))
    assert sent(authority, there.url()) == outcome


@pytest.mark.parametrize(("status", "outcome"), [(200, None), (503, "the receiver answered 503")])
def test_a_receiver_that_keeps_the_line_open_after_its_status_has_answered(authority, receiver, status, outcome):
    there = receiver(saying_then_silent(f"HTTP/1.1 {status} So\r\ncontent-length: 9\r\n\r\n"))
    assert sent(authority, there.url(), seconds=PATIENCE * 10) == outcome


def test_a_short_answer_is_heard_to_its_end(authority, receiver):
    finished = threading.Event()

    async def in_two_parts(line: ReceiverConnection) -> None:
        await line.say("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nnot ")
        await asyncio.sleep(0)
        await line.say("yet.")
        finished.set()

    assert sent(authority, receiver(in_two_parts).url()) is None
    assert finished.wait(PATIENCE)


def test_nothing_of_the_environment_is_honoured(authority, receiver, monkeypatch, tmp_path):
    there, proxy = receiver(answering(200)), receiver(answering(200), None)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, proxy.url(scheme="http"))
    (tmp_path / ".netrc").write_text(f"machine {LOOPBACK} login a password b\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    assert sent(authority, there.url()) is None
    assert "authorization" not in there.next().headers
    assert proxy.connections == 0


def test_a_url_that_was_stored_under_other_rules_is_refused_before_anything_is_asked(authority):
    names = leading_to(LOOPBACK)
    for url in ("ftp://example.com/", "https://u:p@example.com/", "https://x/\r\nevil: 1", "", "https://127.1/"):
        assert sent(authority, url, resolve_name=names)
    assert names.lookups == []


def test_a_large_notice_arrives_whole(authority, receiver):
    body = '{"id":"' + "x" * 1_000_000 + '"}'
    there = receiver(answering(200))
    assert sent(authority, there.url(), body) is None
    assert there.next().body == body.encode()


@pytest.mark.parametrize(("status", "outcome"), [(202, None), (413, "the receiver answered 413")])
def test_a_receiver_that_answers_before_it_has_read_is_believed(authority, receiver, status, outcome):
    there = receiver(silent, None, greeting=f"HTTP/1.1 {status} So\r\n\r\n")
    assert sent(authority, there.url(scheme="http"), "x" * 1_000_000) == outcome


def test_a_cancelled_attempt_lets_go_of_its_connection(authority, receiver):
    there = receiver(silent)

    async def cancelled() -> None:
        sender = Sender(allow_private=True, context=authority.client_context())
        task = asyncio.create_task(sender.send(delivery(there.url()), NOW))
        await asyncio.get_running_loop().run_in_executor(None, there.next)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
