"""From the start of a process to log p of ten rows, and the peak memory of that process."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import Bench, difference


# A process counts the memory of the one that started it until it becomes another program, so a small one starts it.
START = """
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
sys.stderr.write(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss * 1024}")
sys.exit(status != 0)
"""


def run_process(command: list[str]) -> tuple[list[float], float, float, int]:
    """The numbers that it prints; wall and processor seconds; peak memory in bytes."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-SE", "-c", START, *command], capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{command} failed: {done.stderr}")
    cpu, memory = done.stderr.split()[-2:]
    numbers = [float(line) for line in done.stdout.split() if line.strip("-.e+0123456789") == ""]
    return numbers, wall, float(cpu), int(memory)


def run(bench: Bench, options: Any) -> None:
    if bench.threads > 1:
        return
    model = f"{options.models}/moons.hollow"
    table = Path(options.models) / "ten.csv"
    rows = np.load(f"{options.models}/moons.rows.npy")[:10]
    np.savetxt(table, rows, delimiter=",", header="x1,x2", comments="")
    mine = [options.program, "logp", model, str(table), "--threads", "1"]
    script = str(Path(__file__).with_name("first_result.py"))
    for peer in ("torch", "jax"):
        if not bench.wants("start", peer) and not bench.wants("memory", peer):
            continue
        theirs = [sys.executable, script, peer, model, str(table)]
        results = [run_process(command) for command in (mine, theirs)]  # also fills the page cache
        agree = difference(results[0][0], results[1][0])
        if not agree < 1e-3:
            raise SystemExit(f"start: results of {peer} differ by {agree:.3g}")
        rounds = [[run_process(command) for command in (mine, theirs)] for _ in range(1 if options.quick else 5)]
        side = [[float(np.median([r[i][k] for r in rounds])) for k in (1, 2, 3)] for i in (0, 1)]
        ratio = side[1][1] / side[0][1]
        bench.line("start", peer, agree, ours_s=side[0][0], peer_s=side[1][0], ours_cpu_s=side[0][1],
                   peer_cpu_s=side[1][1], ratio=ratio)  # fmt: skip
        bench.line("memory", peer, agree, ours_s=None, peer_s=None, ours_bytes=side[0][2], peer_bytes=side[1][2],
                   ratio=side[1][2] / side[0][2])  # fmt: skip
