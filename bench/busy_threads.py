#!/usr/bin/env python3
"""log p and samples with one and with two threads while another process keeps a processor busy: one line of JSON a case.

    HOLLOW_LIBRARY=build/libhollow.so bench/busy_threads.py MODEL ROWS.npy

Both run in turn; `ratio` is the median over rounds of one thread's wall time over two threads' time: below 1 the second thread costs time.
Needs numpy and two processors.
"""
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "peers"), os.path.join(HERE, "..", "python")]

import numpy as np  # noqa: E402
import ours  # noqa: E402
from hollownet._library import Context  # noqa: E402

SIZES, SECONDS = (128, 1000, 10000), 4


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main():
    path, table = sys.argv[1:3]
    flows = [ours.Flow(Context(threads), path) for threads in (1, 2)]
    for flow in flows:
        flow.solve_as_calibrated()
    rows = np.load(table)
    rows = flows[0].standardised(np.concatenate([rows] * (-(-max(SIZES) // len(rows)))))
    noise = np.random.default_rng(1).normal(size=rows.shape)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for kind in ("logp", "sample"):
            for size in SIZES:
                runs = [getattr(flow, kind)((rows if kind == "logp" else noise)[:size]) for flow in flows]
                times, end = [], time.time() + SECONDS
                while time.time() < end or len(times) < 5:
                    times.append([timed(run) for run in runs])
                print(json.dumps({"case": kind, "columns": flows[0].dim, "rows": size,
                                  "one_s": statistics.median(t[0] for t in times), "two_s": statistics.median(t[1] for t in times),
                                  "ratio": round(statistics.median(t[0] / t[1] for t in times), 3), "rounds": len(times)}), flush=True)
    finally:
        busy.kill()


if __name__ == "__main__":
    main()
