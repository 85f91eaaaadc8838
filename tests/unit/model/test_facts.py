"""Facts: absent by default, and the same after a worker has sent them."""

from qwed.engines._pool.messages import WorkerReply, decode_reply, encode
from qwed.model import NO_FACTS, Effect, EffectKind, Facts, Status, Verdict
from qwed.model.facts import (
    ClaimFacts,
    CodeFacts,
    EmailFacts,
    HttpFacts,
    ShellCommand,
    ShellFacts,
    SqlFacts,
)

EVERY_GROUP = Facts(
    sql=SqlFacts(complete=True, statements=("select",), tables=("hr.salaries",), columns=("id", "*"), limit=5),
    shell=ShellFacts(
        complete=False,
        commands=(ShellCommand(program="git", subcommand="push", options=("-f",), arguments=("origin",)),),
        paths_written=("/srv/app/x",),
        hosts=("example.com",),
    ),
    http=HttpFacts(complete=True, method="GET", host="example.com", path="/"),
    email=EmailFacts(complete=True, recipients=("a@b.example",), domains=("b.example",)),
    code=CodeFacts(complete=True, imports=("os.path",), effects=(Effect(EffectKind.DELETE, "x", unbounded=True),)),
    claim=ClaimFacts(complete=True, status="VERIFIED"),
)


def test_a_verdict_has_no_facts_unless_they_are_given() -> None:
    assert Verdict(status=Status.VERIFIED, engine="tool").facts is NO_FACTS
    assert Facts() == NO_FACTS


def test_facts_arrive_from_a_worker_as_they_were_sent() -> None:
    verdict = Verdict(status=Status.VERIFIED, engine="sql", facts=EVERY_GROUP)
    assert decode_reply(encode(WorkerReply(number=1, verdict=verdict))).verdict == verdict
