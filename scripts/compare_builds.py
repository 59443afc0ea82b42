#!/usr/bin/env python3
"""compare_builds.py NAME BUILD OTHER [ROUNDS [CASES]]: what a choice of the build costs: `hollow bench ddim` of the folder BUILD over that of OTHER, in processor time.

The two programs take turns, case by case, so that other work on the machine meets both. Prints a line of JSON for each case, with the ratios of the
least times of all rounds and the medians over the rounds of the ratios of the least times of one round."""

import json
import statistics
import subprocess
import sys

QUANTITIES = ("f", "fd", "train")


def times(build, case):
    command = [f"{build}/hollow", "bench", "ddim", "--case", case, "--clock", "cpu", "--seconds", "0.2"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    row = json.loads(run.stdout)
    return [row[q + "_s"] for q in QUANTITIES]


def main():
    name, build, other = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 15
    for case in sys.argv[5] if len(sys.argv) > 5 else "abcd":
        pairs = []
        for k in range(rounds):
            order = (build, other) if k % 2 == 0 else (other, build)
            taken = {folder: times(folder, case) for folder in order}
            pairs.append((taken[build], taken[other]))
        row = {"cost": name, "case": case, "rounds": rounds}
        for q, quantity in enumerate(QUANTITIES):
            least = [min(p[side][q] for p in pairs) for side in (0, 1)]
            row[quantity] = round(least[0] / least[1], 4)
            row[quantity + "_median"] = round(statistics.median(p[0][q] / p[1][q] for p in pairs), 4)
        print(json.dumps(row), flush=True)


main()
