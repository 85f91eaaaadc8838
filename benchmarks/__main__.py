"""Prints one table: what was measured, the figure, the aim, and whether it was met."""

import platform
import sys

from benchmarks import in_process, over_http
from benchmarks.measure import Figure, figure, interleaved, ratio

ROUNDS = 7


def main() -> int:
    """Run everything once; 0 whatever the figures say, because a figure is not a test."""
    rows: list[tuple[str, str, str]] = []
    _say("in process: decisions beside Cedar")
    inside = interleaved(in_process.contenders(), ROUNDS)
    names = list(inside)
    rows += [(f"{name}, us of CPU", str(figure(inside[name])), "") for name in names]
    for name in names[:2]:
        for peer in names[2:]:
            aim = "<= 0.25" if name == names[0] else ""
            rows.append((f"{name} / {peer}", _share(ratio(inside[name], inside[peer])), aim))
    _say("over HTTP: durable decisions beside bare echo")
    with over_http.rig() as rig:
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
        resident = rig.resident_mb
    aims = {"durable decision, repeated query, a JWT each": ">= 0.22"}
    for name, results in seen.items():
        rows.append((f"{name}, requests/s", str(figure([load.per_second for load in results])), ""))
        rows.append((f"{name}, p50 ms at {over_http.CONNECTIONS}", str(figure([load.p50_ms for load in results])), ""))
        rows.append((f"{name}, p99 ms at {over_http.CONNECTIONS}", str(figure([load.p99_ms for load in results])), ""))
        spread = figure([load.p99_ms / load.p50_ms for load in results])
        rows.append((f"{name}, p99 / p50", _share(spread), ""))
    echo = [load.per_second for load in seen["echo"]]
    for name, results in seen.items():
        if name != "echo":
            share = ratio([load.per_second for load in results], echo)
            rows.append((f"{name} / echo", _share(share), aims.get(name, "")))
    rows.append(("idle server, resident MB, workers apart", f"{resident:.0f}", "< 120"))
    _print(rows)
    return 0


def _share(found: Figure) -> str:
    return f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f})"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print(rows: list[tuple[str, str, str]]) -> None:
    print(f"\nPython {platform.python_version()}, median of {ROUNDS} interleaved rounds (lowest to highest)\n")
    print("| measured | figure | aim |\n|---|---|---|")
    for name, shown, aim in rows:
        print(f"| {name} | {shown} | {aim} |")


if __name__ == "__main__":
    sys.exit(main())
