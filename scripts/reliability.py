#!/usr/bin/env python3
"""reliability.py PAGE FILE ...: put the tables of attacks into PAGE (docs/reliability.md), between its lines <!-- NAME --> and <!-- end -->.

FILEs are what the programs printed: JSON lines of scripts/fuzz.sh (build-fuzz/fuzz.json), soak.py, attack.py, coverage.py, compare_builds.py and of `hollow bench solvers`, and lines such as
"test_faults: 119 passed, 0 failed" of the tests. Runs of the same fuzz target are added up. A table whose lines no FILE has stays as it is."""

import json
import re
import sys


def fuzz_table(rows):
    total = {}
    for row in rows:
        t = total.setdefault(row["fuzz"], dict(row, seconds=0, cpu=0, executions=0, failures=0))
        for key in ("seconds", "cpu", "executions", "failures"):
            t[key] += row.get(key, 0)
        t["edges"] = row["edges"]
        t.setdefault("history", []).append((t["executions"], row["edges"]))
    for t in total.values():  # where the run that passed half of all executions ended
        t["edges_half"] = next(edges for runs, edges in t["history"] if 2 * runs >= t["executions"])
    lines = ["| target | seconds | of CPU | executions | edges, corpus | after half of the executions | at the end | failures |", "|---|---|---|---|---|---|---|---|"]
    for name in sorted(total):
        t = total[name]
        lines.append(
            f"| {name} | {t['seconds']} | {t['cpu']:.0f} | {t['executions']:,} | {t['edges_start']} | {t['edges_half']} | {t['edges']} | {t['failures']} |"
        )
    all_seconds, all_cpu, all_runs = (sum(t[k] for t in total.values()) for k in ("seconds", "cpu", "executions"))
    lines.append(f"| all | {all_seconds} | {all_cpu:.0f} | {all_runs:,} | | | | {sum(t['failures'] for t in total.values())} |")
    return lines


def soak_table(rows):
    lines = ["| seconds | commands | runs | killed | resumed | largest memory, MB | failures |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r['soak']} | {r['commands']} | {r['runs']} | {r['killed']} | {r['resumed']} | {r['largest_kb'] / 1024:.0f} | {r['failures']} |"
        )
    return lines


def attack_table(rows):
    lines = ["| attack | commands | failures |", "|---|---|---|"]
    return lines + [f"| {r['attack']} | {r['commands']} | {r['failures']} |" for r in rows]


def coverage_table(rows):
    lines = ["| folder | lines | run | branches | run | commit |", "|---|---|---|---|---|---|"]
    for r in rows:
        shares = [100 * r[k + "_run"] / max(r[k], 1) for k in ("lines", "branches")]
        lines.append(f"| {r['coverage']}/ | {r['lines']:,} | {shares[0]:.1f} % | {r['branches']:,} | {shares[1]:.1f} % | {r['commit']} |")
    return lines


def cost_table(rows):
    lines = ["| choice | case | f | f + D | training step |", "|---|---|---|---|---|"]
    for r in rows:
        each = [f"{100 * (r[q] - 1):+.1f} % ({100 * (r[q + '_median'] - 1):+.1f} %)" for q in ("f", "fd", "train")]
        lines.append(f"| {r['cost']} | {r['case']} | " + " | ".join(each) + " |")
    return lines


def honest_table(rows):
    lines = ["| problem, tolerance | amplification | runs | status 0 | worst error of these | worst of the trusted code | dishonest |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        amplification = r.get("amplification")
        shown = f"{amplification:.2g}" if amplification is not None and amplification == amplification else ""
        trusted = f"{r['trusted']:.3g}" if r.get("trusted") is not None else "fails"
        worst = f"{r['error']:.3g}" if r["good"] else ""
        lines.append(
            f"| {r['problem']}, {r['rtol']:g} | {shown} | {r['runs']:.0f} | {r['good']:.0f} | {worst} | {trusted} | {r['dishonest']:.0f} |"
        )
    runs, good, bad = (sum(r[k] for r in rows) for k in ("runs", "good", "dishonest"))
    lines.append(f"| all | | {runs:.0f} | {good:.0f} | | | {bad:.0f} |")
    return lines


def main():
    page, found = sys.argv[1], {"fuzz": [], "soak": [], "attack": [], "coverage": [], "cost": [], "honest": [], "checks": []}
    for path in sys.argv[2:]:
        with open(path) as file:
            for line in file:
                if line.startswith("{"):
                    row = json.loads(line)
                    kind = next((k for k in ("fuzz", "soak", "attack", "coverage", "cost") if k in row), None)
                    if kind:
                        found[kind].append(row)
                    elif row.get("section") == "honest":
                        found["honest"].append(row)
                elif m := re.match(r"(test_\w+): (\d+) passed, (\d+) failed", line):
                    found["checks"].append(f"| {m[1]} | {m[2]} | {m[3]} |")
    tables = {
        "fuzz": fuzz_table(found["fuzz"]),
        "soak": soak_table(found["soak"]),
        "attack": attack_table(found["attack"]),
        "coverage": coverage_table(found["coverage"]),
        "cost": cost_table(found["cost"]),
        "honest": honest_table(found["honest"]),
        "checks": ["| test | checks | failures |", "|---|---|---|", *found["checks"]],
    }
    with open(page) as file:
        text = file.read()
    for name, lines in tables.items():
        if found[name]:
            table = "\n".join(lines)
            text = re.sub(rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text, flags=re.S)
    with open(page, "w") as file:
        file.write(text)


main()
