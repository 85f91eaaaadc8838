"""Prints one table: what was measured, the figure, the aim, and whether it was met."""

import platform
import sys
from collections.abc import Callable, Mapping

from benchmarks import (
    a2a_proxy,
    appending,
    client,
    engines,
    in_process,
    messages,
    over_http,
    packs,
    proxy,
    sandbox,
    under_fire,
)
from benchmarks.measure import Figure, figure, interleaved, ratio

ROUNDS = 7


Row = tuple[str, str, str]
AIMS = {"durable decision, repeated query, a JWT each": ">= 0.22"}


def main() -> int:
    """Run everything once; 0 whatever the figures say, because a figure is not a test."""
    _say("in process: decisions beside Cedar")
    inside = _inside(interleaved(in_process.contenders(), ROUNDS))
    _say("engines and guards, beside bandit and a bare parse")
    judged = _judged(interleaved(engines.contenders(), ROUNDS))
    _say("messages between agents, beside a bare reading of them")
    sent = _sent()
    _say("the guards of the domain packs")
    packed = [(name, str(measured), "") for name, measured in packs.rows()]
    _say("over HTTP: durable decisions beside bare echo")
    with over_http.rig() as rig:
        outside = _outside(_loads(rig))
        resident = ("idle server, resident MB, workers apart", f"{rig.resident_mb:.0f}", "< 120")
    _say("the client beside the HTTP library it asks with")
    asked = _asked()
    _say("the MCP proxy beside the server it stands before")
    proxied = _proxied()
    _say("the A2A proxy beside the agent it stands before")
    messaged = _messaged()
    _say("the log: appending to ten leaves and to a million")
    logged = _logged()
    _say("the sandbox beside a bare Python")
    boxed = _boxed()
    _say("under fire: /health while the engines work on bombs")
    _print(
        [
            *inside,
            *judged,
            *sent,
            *packed,
            *outside,
            resident,
            *asked,
            *proxied,
            *messaged,
            *logged,
            *boxed,
            *_under_fire(),
        ]
    )
    return 0


def _inside(seen: dict[str, list[float]]) -> list[Row]:
    names = list(seen)
    rows = [(f"{name}, us of CPU", str(figure(seen[name])), "") for name in names]
    for name in names[:2]:
        for peer in names[2:]:
            aim = "<= 0.25" if name == names[0] else ""
            rows.append((f"{name} / {peer}", _share(ratio(seen[name], seen[peer])), aim))
    return rows


_PEERS = (
    ("sql engine, new text", "bare sqlglot parse of the same"),
    ("python guard, 5 lines", "bandit, 5 lines"),
    ("python guard, 1,000 lines", "bandit, 1,000 lines"),
    ("python guard, 1,000 lines", "bare ast.parse, 1,000 lines"),
    ("python guard, 4,000 lines", "python guard, 1,000 lines"),
    ("mcp gateway, 50 lines", "bare ast.parse, 50 lines"),
)


_CPU_AIMS = {"mcp gateway, 50 lines": "< 1000"}


def _judged(seen: dict[str, list[float]]) -> list[Row]:
    rows = [(f"{name}, us of CPU", str(figure(values)), _CPU_AIMS.get(name, "")) for name, values in seen.items()]
    for ours, theirs in _PEERS:
        # Four times the lines: linear is four times the work.
        aim = "about 4" if ours.startswith("python guard, 4,000") else ""
        rows.append((f"{ours} / {theirs}", _share(ratio(seen[ours], seen[theirs])), aim))
    return rows


def _sent() -> list[Row]:
    contenders = messages.contenders()
    for run in contenders.values():
        run()  # once to import what is imported late
    seen = interleaved(contenders, ROUNDS)
    aims = dict.fromkeys((messages.FINANCIAL, messages.CODE), "< 0.3")
    rows = [(f"{name}, ms", _share(figure(values)), aims.get(name, "")) for name, values in seen.items()]
    for ours, theirs in ((messages.FINANCIAL, messages.JSON_OF), (messages.CODE, messages.PARSE_OF)):
        rows.append((f"{ours} / {theirs}", _two(ratio(seen[ours], seen[theirs])), ""))
    return rows


def _asked() -> list[Row]:
    with client.contenders() as contenders:
        for run in contenders.values():
            run()  # once to warm every cache and connection
        seen = interleaved(contenders, ROUNDS)
    (ours, mine), (theirs, plain) = seen.items()
    waited = ratio([took.waited for took in mine], [took.waited for took in plain])
    worked = ratio([took.worked for took in mine], [took.worked for took in plain])
    return [
        *(
            (f"{name}, ms", f"{figure([took.waited for took in took_all]).median:.2f}", "")
            for name, took_all in seen.items()
        ),
        (f"{ours} / {theirs}", _share(waited), "<= 1.10"),
        (f"{ours} / {theirs}, CPU of the asking process", _share(worked), ""),
        ("import qwed_sdk, ms", str(figure([client.import_ms() for _ in range(ROUNDS)])), "< 250"),
    ]


def _proxied() -> list[Row]:
    with proxy.contenders() as contenders:
        return _added(contenders, proxy.STRAIGHT, {proxy.OWN: "< 3", proxy.SERVED: ""})


def _messaged() -> list[Row]:
    with a2a_proxy.contenders() as contenders:
        return _added(contenders, a2a_proxy.STRAIGHT, {a2a_proxy.OWN: "< 3", a2a_proxy.SERVED: ""})


def _added(contenders: dict[str, Callable[[], float]], straight: str, aims: Mapping[str, str]) -> list[Row]:
    """What each way adds to the straight one."""
    for run in contenders.values():
        run()  # once to warm every cache and connection
    seen = interleaved(contenders, ROUNDS)
    rows = [(f"{name}, ms", _two(figure(values)), "") for name, values in seen.items()]
    for name, aim in aims.items():
        added = figure([through - direct for through, direct in zip(seen[name], seen[straight], strict=True)])
        rows.append((f"{name}: added, ms", _two(added), aim))
    return rows


def _two(found: Figure) -> str:
    return f"{found.median:.2f} ({found.low:.2f} to {found.high:.2f})"


def _logged() -> list[Row]:
    with appending.long_log(_say) as log:
        seen = interleaved(appending.contenders(log), ROUNDS)
        short, long = seen
        rows = [(f"{name}, us of CPU a leaf", str(figure(values)), "") for name, values in seen.items()]
        rows.append((f"{long} / {short}", _share(ratio(seen[long], seen[short])), "<= 1.15"))
        _say("  checking it")
        return [*rows, ("a million leaves checked offline, seconds", f"{appending.seconds_to_verify(log):.1f}", "< 60")]


def _boxed() -> list[Row]:
    contenders = sandbox.contenders()
    if isinstance(contenders, tuple):
        return [("sandboxed job that does nothing, ms", contenders.reason, "< 150")]
    seen = interleaved(contenders, ROUNDS)
    ours, theirs = seen
    rows = [(f"{name}, ms", str(figure(values)), "< 150" if name == ours else "") for name, values in seen.items()]
    return [*rows, (f"{ours} / {theirs}", _share(ratio(seen[ours], seen[theirs])), "")]


def _loads(rig: over_http.Rig) -> dict[str, list[over_http.Load]]:
    loads = {
        "echo": rig.echo,
        "durable decision, repeated query, a JWT each": rig.decide_with_jwt,
        "durable decision, repeated query, no JWT": rig.decide_without_jwt,
        "durable decision, new SQL each time": rig.decide_new_sql,
    }
    for run in loads.values():
        run()  # once to warm every cache and connection
    seen: dict[str, list[over_http.Load]] = {name: [] for name in loads}
    for number in range(ROUNDS):
        _say(f"  round {number + 1} of {ROUNDS}")
        for name, run in loads.items():
            seen[name].append(run())
    return seen


def _outside(seen: dict[str, list[over_http.Load]]) -> list[Row]:
    rows: list[Row] = []
    at = f"at {over_http.CONNECTIONS} connections"
    for name, results in seen.items():
        rows.append((f"{name}, requests/s", str(figure([load.per_second for load in results])), ""))
        rows.append((f"{name}, p50 ms {at}", str(figure([load.p50_ms for load in results])), ""))
        rows.append((f"{name}, p99 ms {at}", str(figure([load.p99_ms for load in results])), ""))
        rows.append((f"{name}, p99 / p50", _share(figure([load.p99_ms / load.p50_ms for load in results])), ""))
    echo = [load.per_second for load in seen.pop("echo")]
    for name, results in seen.items():
        share = ratio([load.per_second for load in results], echo)
        rows.append((f"{name} / echo", _share(share), AIMS.get(name, "")))
    return rows


def _under_fire() -> list[Row]:
    quiet, busy = under_fire.measure()
    name = f"/health while {under_fire.SENDERS} connections send bombs"
    return [
        ("/health at rest, median and worst ms", f"{quiet.median:.1f}, {quiet.worst:.1f}", ""),
        (f"{name}, median ms of {busy.beats}", f"{busy.median:.1f}", ""),
        (f"{name}, p99 and worst ms", f"{busy.p99:.1f}, {busy.worst:.1f}", "< 100"),
    ]


def _share(found: Figure) -> str:
    return f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f})"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print(rows: list[Row]) -> None:
    print(f"\nPython {platform.python_version()}, median of {ROUNDS} interleaved rounds (lowest to highest)\n")
    print("| measured | figure | aim |\n|---|---|---|")
    for name, shown, aim in rows:
        print(f"| {name} | {shown} | {aim} |")


if __name__ == "__main__":
    sys.exit(main())
