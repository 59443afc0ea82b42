"""Timing two functions in turn, and printing a line of JSON."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def _slice(run: Callable[[], Any], count: int) -> tuple[float, float]:
    """Wall and processor seconds of one call, from `count` calls."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        run()
    return (time.perf_counter() - wall) / count, (time.process_time() - cpu) / count


class Bench:
    """`seconds`: how long each pair is measured, at least; `threads` goes into the lines; `only`: beginnings of the cases to
    measure, or none for all; `done`: pairs of case and peer that are not measured again."""

    def __init__(
        self, threads: int, seconds: float, only: tuple[str, ...] = (), done: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        self.threads, self.seconds, self.only, self.done = threads, seconds, only, done

    def wants(self, case: str, peer: str = "") -> bool:
        """Whether a case is to be measured: `logp/43` belongs to `logp`, and `f/a` not to `f_d`."""
        parts = case.split("/")
        names = {"/".join(parts[: i + 1]) for i in range(len(parts))} | {case}
        return (not self.only or not names.isdisjoint(self.only)) and (case, peer) not in self.done

    def settle(self, run: Callable[[], Any]) -> None:
        """Before a slice with several threads: idle threads of the other side spin for some milliseconds after their last
        work and would take a processor from this side. Wait until they sleep, then wake this side's threads by calls:
        an idle processor of a virtual machine may need milliseconds."""
        if self.threads > 1:
            time.sleep(0.02)
            end = time.perf_counter() + 0.005
            run()
            while time.perf_counter() < end:
                run()

    def pair(self, ours: Callable[[], Any], peer: Callable[[], Any]) -> dict[str, float]:
        """Both in turn, in rounds of at least 10 ms each; medians over rounds, and the median of the rounds' ratios."""
        first = [_slice(run, 1)[0] for run in (ours, peer)]
        counts = [max(1, int(0.01 / max(one, 1e-7))) for one in first]
        times: list[list[tuple[float, float]]] = [[], []]
        end = time.perf_counter() + self.seconds
        while len(times[0]) < 3 or (time.perf_counter() < end and len(times[0]) < 200):
            order = (0, 1) if len(times[0]) % 2 == 0 else (1, 0)
            for side in order:
                self.settle((ours, peer)[side])
                times[side].append(_slice((ours, peer)[side], counts[side]))
        kind = 1 if self.threads == 1 else 0
        ratio = statistics.median(p[kind] / max(o[kind], 1e-9) for o, p in zip(*times, strict=True))
        return {
            "ours_s": statistics.median(t[0] for t in times[0]),
            "peer_s": statistics.median(t[0] for t in times[1]),
            "ours_cpu_s": statistics.median(t[1] for t in times[0]),
            "peer_cpu_s": statistics.median(t[1] for t in times[1]),
            "ratio": ratio,
        }

    def line(self, case: str, peer: str, agree: float, **values: Any) -> None:
        """Print the results of one case. `agree` is the largest difference of the outputs relative to their size."""
        entry = {"case": case, "peer": peer, "threads": self.threads, **values, "agree": agree}
        entry = {k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in entry.items()}
        print(json.dumps(entry), flush=True)
        ratio = entry.get("ratio")
        print(f"  {case:24} {peer:34} threads {self.threads}  x {ratio}", file=sys.stderr, flush=True)

    def compare(
        self, case: str, peer: str, ours: Callable[[], Any], theirs: Callable[[], Any], limit: float, **more: Any
    ) -> None:
        """Outputs first: a difference beyond `limit` is an error, and nothing is timed."""
        if not self.wants(case, peer):
            return
        agree = difference(ours(), theirs())
        if not agree <= limit:
            raise SystemExit(f"{case}, {peer}: results differ by {agree:.3g}, more than {limit:g}")
        self.line(case, peer, agree, **self.pair(ours, theirs), **more)


def difference(a: Any, b: Any) -> float:
    """Of arrays, or of lists of them: the largest difference over the largest value, array by array."""
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        return max(difference(x, y) for x, y in zip(a, b, strict=True))
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))
