#!/usr/bin/env python3
"""time_tests.py BUILD [REGEX]: run the tests of BUILD one after the other and print the processor time of each, the longest last.

The processor time does not depend much on what else the machine does; `make test` takes about the sum over the number of cores."""

import json
import re
import resource
import subprocess
import sys


def main() -> int:
    build = sys.argv[1]
    pattern = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
    text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True).stdout
    times, failed = [], 0
    for test in json.loads(text)["tests"]:
        if "command" not in test or not pattern.search(test["name"]):
            continue
        where = {p["name"]: p["value"] for p in test["properties"]}
        if where.get("DISABLED"):
            continue
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(
            test["command"], cwd=where.get("WORKING_DIRECTORY", build), capture_output=True, stdin=subprocess.DEVNULL
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        bad = run.returncode not in (0, 77)
        failed += bad
        times.append((seconds, test["name"], "  FAILED" if bad else ""))
    for seconds, name, bad in sorted(times):
        print(f"{seconds:8.1f}  {name}{bad}")
    print(f"{sum(t[0] for t in times):8.1f}  all {len(times)}")
    return failed > 0


sys.exit(main())
