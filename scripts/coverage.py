#!/usr/bin/env python3
"""coverage.py BUILD: lines and branches of src/ and cli/ that the tests ran, from a build with --coverage, by gcov. Prints one line of JSON for each
folder, with the commit of the tree, and the files with the most lines that were not run.

A line or a branch counts once, however many objects it was compiled into, and is run if it was run in one of them. Nothing is left out: neither
branches of failed allocations nor those that cannot be taken."""

import collections
import json
import os
import subprocess
import sys


def main():
    build = os.path.abspath(sys.argv[1])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    lines, branches = collections.defaultdict(int), collections.defaultdict(int)
    data = [os.path.join(d, f) for d, _, files in os.walk(build) for f in files if f.endswith(".gcda")]
    for path in data:
        run = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", path], cwd=build, capture_output=True, text=True)
        for text in run.stdout.splitlines():
            report = json.loads(text)
            for file in report["files"]:
                name = os.path.relpath(os.path.join(report["current_working_directory"], file["file"]), root)
                if not name.startswith(("src/", "cli/")):
                    continue
                for line in file["lines"]:
                    lines[name, line["line_number"]] += line["count"]
                    for k, branch in enumerate(line["branches"]):
                        if not branch["throw"]:
                            branches[name, line["line_number"], k] += branch["count"]
    git = ["git", "-C", root]
    commit = subprocess.run([*git, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True).stdout.strip()
    if subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "src", "cli"]).returncode:
        commit += " with changes"
    for folder in ("src", "cli"):
        of_lines = [v for k, v in lines.items() if k[0].startswith(folder + "/")]
        of_branches = [v for k, v in branches.items() if k[0].startswith(folder + "/")]
        if of_lines:
            row = {"coverage": folder, "lines": len(of_lines), "lines_run": sum(v > 0 for v in of_lines)}
            row |= {"branches": len(of_branches), "branches_run": sum(v > 0 for v in of_branches), "commit": commit}
            print(json.dumps(row))
    missed = collections.Counter(k[0] for k, v in lines.items() if v == 0)
    for name, count in missed.most_common(15):
        print(f"{count:6}  {name}")


main()
