#!/usr/bin/env python3
"""report.py PROGRAM [MODEL] - what `hollow report` costs on large tables of 43 columns.

Prints a line of JSON: processor seconds of the page of 10^6 rows (4,000 rows and 2,000 draws) and of `hollow logp` on 6,000 rows, one
thread, best of three pairs, and the peak memory of the page for 10^5 and for 10^6 rows. MODEL is a density model of 43 columns; without
it one is fitted, a flow of 50 iterations. Needs NumPy and 400 MB of disk.
"""

import json
import os
import subprocess
import sys
import tempfile

COLUMNS = 43


def cost(*arguments: str) -> tuple[float, int]:
    """Processor seconds, and peak memory in KB."""
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(arguments)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def write(path: str, rows: int) -> None:
    import numpy as np

    random = np.random.default_rng(1)
    mix = random.normal(size=(COLUMNS, COLUMNS)) / 6 + np.eye(COLUMNS)
    table = np.lib.format.open_memmap(path, "w+", np.float64, (rows, COLUMNS))
    for first in range(0, rows, 10000):
        count = min(10000, rows - first)
        table[first : first + count] = random.normal(size=(count, COLUMNS)) @ mix


def main() -> None:
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        large, middle, few = (f"{folder}/{rows}.npy" for rows in (1000000, 100000, 6000))
        for table, rows in ((large, 1000000), (middle, 100000), (few, 6000)):  # elsewhere: a child's peak is at least its parent's
            subprocess.run([sys.executable, __file__, "--write", table, str(rows)], check=True)
        model = sys.argv[2] if len(sys.argv) > 2 else f"{folder}/m.hollow"
        if len(sys.argv) <= 2:
            cost(program, "fit", few, "-o", model, "--iters", "50", "--members", "flow", "--quiet")

        def page(table: str) -> tuple[float, int]:
            return cost(program, "report", model, table, "-o", f"{folder}/page.html", "--threads", "1", "--quiet")

        pairs = [(page(large), cost(program, "logp", model, few, "--threads", "1", "--quiet")) for _ in range(3)]
        report, logp = min(p[0][0] for p in pairs), min(p[1][0] for p in pairs)
        print(json.dumps({"report_s": report, "logp_s": logp, "ratio": report / logp, "page_bytes": os.path.getsize(f"{folder}/page.html"),
                          "peak_kb_1e5": page(middle)[1], "peak_kb_1e6": max(p[0][1] for p in pairs)}))  # fmt: skip


if sys.argv[1] == "--write":
    write(sys.argv[2], int(sys.argv[3]))
else:
    main()
