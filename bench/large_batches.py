#!/usr/bin/env python3
"""What large batches cost in nats: flows of a table of three columns, 20,000 rows, trained with batches of 256, 1,024 and 4,096 rows.

    bench/large_batches.py build/hollow docs/scale.md           # both tables
    bench/large_batches.py build/hollow docs/scale.md cnf       # one: maf, a masked flow; or cnf, a continuous one by likelihood

Writes the tables between the marks of the page. Means over three seeds of -log p of 4,000 rows that no run has seen. Needs numpy.
"""
import subprocess
import sys
import tempfile

import numpy as np

# batch, steps, factor of the rate 0.01, steps of warm-up (0: the default, a fiftieth of all)
CASES = {
    "maf": [(256, 800, 1, 0), (1024, 200, 1, 0), (1024, 200, 2, 0), (1024, 200, 4, 0), (1024, 200, 4, 20), (1024, 400, 2, 0),
            (1024, 800, 2, 0), (4096, 50, 1, 0), (4096, 50, 4, 5), (4096, 200, 4, 20), (4096, 400, 4, 40), (4096, 800, 4, 80)],
    "cnf": [(256, 300, 1, 0), (1024, 75, 1, 0), (1024, 75, 2, 0), (1024, 75, 4, 0), (1024, 75, 4, 8), (1024, 150, 2, 0),
            (4096, 19, 4, 2), (4096, 75, 4, 8), (4096, 150, 4, 15)],
}
OPTIONS = {
    "maf": [],
    "cnf": ["--loss", "nll", "--hidden", "32", "--width", "32", "--features", "8", "--layers", "2", "--ode-steps", "4", "--calibrate", "off"],
}


def draw(rows, seed):
    random = np.random.default_rng(seed)
    x = random.standard_normal(rows)
    return np.stack([x, x * x / 2 + 0.3 * random.standard_normal(rows), np.sin(3 * x) + 0.2 * random.standard_normal(rows)], 1)


def run(hollow, place, kind, case, seed):
    batch, iterations, rate, warmup = case
    command = [hollow, "fit", f"{place}/train.npy", "-o", f"{place}/m", "--model", kind, "--members", "flow", "--seed", str(seed), "--threads", "1", "--quiet",
               "--batch", str(batch), "--iters", str(iterations), "--lr", str(0.01 * rate)] + OPTIONS[kind]
    subprocess.run(command + (["--warmup", str(warmup)] if warmup else []), check=True)
    subprocess.run([hollow, "logp", f"{place}/m", f"{place}/test.npy", "--quiet", "--out", f"{place}/logp.npy"], check=True)
    return -np.load(f"{place}/logp.npy").mean()


def table(hollow, place, kind):
    lines = ["| batch | steps | rows seen | rate | warm-up, steps | nats | against the first |", "|---|---|---|---|---|---|---|"]
    first = None
    for case in CASES[kind]:
        nats = [run(hollow, place, kind, case, seed) for seed in (1, 2, 3)]
        mean = float(np.mean(nats))
        first = mean if first is None else first
        batch, steps, rate, warmup = case
        lines.append(f"| {batch:,} | {steps} | {batch * steps:,} | {0.01 * rate:g} | {warmup or max(1, steps // 50)} | {mean:.3f} ({min(nats):.3f} to {max(nats):.3f}) | {mean - first:+.3f} |")
    return "\n".join(lines)


def main():
    hollow, page = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as place:
        np.save(f"{place}/train.npy", draw(20000, 1))
        np.save(f"{place}/test.npy", draw(4000, 2))
        for kind in sys.argv[3:] or list(CASES):
            text = table(hollow, place, kind)
            start, end = f"<!-- batches of {kind} -->\n", "<!-- end of batches -->"
            with open(page, encoding="utf-8") as file:
                before, rest = file.read().split(start, 1)
            with open(page, "w", encoding="utf-8") as file:
                file.write(f"{before}{start}{text}\n{end}{rest.split(end, 1)[1]}")


main()
