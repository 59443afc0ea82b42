#!/usr/bin/env python3
"""Measure the library beside PyTorch, JAX, torchdiffeq, diffrax: one line of JSON a case, and docs/benchmarks.md from them.

    peers.py --build build [--venv DIR] [--threads 1,2] [--case ddim,flows,vae,logp/43,...] [--resume] [--quick] [--docs DIR]
    peers.py --report LINES.jsonl --docs docs        write the page from lines that are there

The virtual environment is made when it is missing, with the releases of requirements.txt; HOLLOW_PEERS_VENV names another place for it.
--case measures some groups or cases again and keeps the other lines of BUILD/peers.jsonl; --resume keeps all lines and measures what
is missing. Each number of threads is a process of its own that has as many processors; within it both sides run in turn. Outputs are
compared first, and nothing is timed if they differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GROUPS = {  # files of cases, and the cases in them
    "nets": ["f", "f_d", "train"],
    "flows": ["logp", "sample", "train_flow"],
    "images": ["conv", "dense", "vae"],
    "sde": ["sde"],
    "start": ["start", "memory"],
}
ALIASES = {"ddim": "nets"}


def make_environment(venv: Path) -> str:
    python = venv / "bin" / "python"
    wanted = (HERE / "requirements.txt").read_text()
    stamp = venv / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-r", str(HERE / "requirements.txt")], check=True)
        stamp.write_text(wanted)
    return str(python)


def make_models(python: str, program: Path, models: Path, quick: bool) -> None:
    """Two flows by `hollow fit`: two moons in 2 dimensions, MiniBooNE in 43, with the solver that fit calibrated."""
    models.mkdir(parents=True, exist_ok=True)
    rows = models / "moons.rows.npy"
    if not rows.exists():
        subprocess.run([python, "-c", MOONS, str(rows)], check=True)
    data = ROOT / "data" / "miniboone"
    jobs = {"moons": (rows, "800"), "miniboone": (data / "train.npy", "400")}
    for name, (table, iterations) in jobs.items():
        model = models / f"{name}.hollow"
        if model.exists():
            continue
        command = [str(program), "fit", str(table), "-o", str(model), "--members", "flow", "--atoms", "off", "--quiet"]
        subprocess.run([*command, "--iters", "100" if quick else iterations], check=True)
    target = models / "miniboone.rows.npy"
    if not target.exists():
        target.write_bytes((data / "val.npy").read_bytes())


MOONS = """
import sys
import numpy as np
r = np.random.default_rng(1)
n = 20000
t, s = np.pi * r.random(n), r.integers(0, 2, n)
a, b = np.stack([np.cos(t), np.sin(t)], 1), np.stack([1 - np.cos(t), 0.5 - np.sin(t)], 1)
np.save(sys.argv[1], np.where(s[:, None] == 0, a, b) + 0.1 * r.normal(size=(n, 2)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--venv", type=Path, default=os.environ.get("HOLLOW_PEERS_VENV"),
                        help="default: HOLLOW_PEERS_VENV, or peers-venv in the build directory")  # fmt: skip
    parser.add_argument("--models", type=Path, help="default: peers-models in the build directory")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--case", default="", help="groups (ddim or nets, flows, images, sde, start) or cases, with commas")
    parser.add_argument("--resume", action="store_true", help="keep the lines of the last run, measure what is missing")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each pair")
    parser.add_argument("--isa", choices=["avx2", "avx512"], help="instruction set of nets, images and sde, on both sides")
    parser.add_argument("--quick", action="store_true", help="few repetitions, no torch.compile, small models")
    parser.add_argument("--docs", type=Path, help="write benchmarks.md and benchmarks.svg there")
    parser.add_argument("--report", type=Path, help="measure nothing, write the page from these lines")
    options = parser.parse_args()
    build = options.build.resolve()
    if options.report:
        write_report(options.report.read_text(), options.docs or ROOT / "docs")
        return
    groups, only = choose(options.case)
    python = make_environment(Path(options.venv or build / "peers-venv").resolve())
    models = (options.models or build / ("peers-quick" if options.quick else "peers-models")).resolve()
    if "flows" in groups or "start" in groups:
        make_models(python, build / "hollow", models, options.quick)
    lines = build / "peers.jsonl"
    environment = dict(os.environ, HOLLOW_LIBRARY=str(build / "libhollow.so"), PYTHONDONTWRITEBYTECODE="1")
    counts = options.threads.split(",")
    kept = keep(lines, only, [int(n) for n in counts], options.case != "", options.resume)
    lines.write_text("".join(json.dumps(e) + "\n" for e in kept))
    with lines.open("a") as out:
        for threads in counts:
            out.flush()
            command = [python, str(HERE / "worker.py"), "--threads", threads, "--cases", ",".join(groups)]
            command += ["--only", ",".join(only), "--done", str(lines), "--seconds", str(options.seconds)]
            command += ["--models", str(models), "--program", str(build / "hollow")] + ["--quick"] * options.quick
            command += ["--isa", options.isa] if options.isa else []
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
                assert process.stdout
                for line in process.stdout:
                    print(line, end="", flush=True)
                    out.write(line)
                    out.flush()
            if process.returncode:
                sys.exit(process.returncode)
    if options.docs:
        write_report(lines.read_text(), options.docs)


def choose(case: str) -> tuple[list[str], list[str]]:
    """Groups to run, and the beginnings of the cases to measure in them (none: all)."""
    names = [ALIASES.get(name, name) for name in case.split(",") if name]
    only = [kind for name in names for kind in GROUPS.get(name, [name])]
    kinds = {kind: group for group, members in GROUPS.items() for kind in members}
    unknown = [name for name in only if name.split("/")[0] not in kinds]
    if unknown:
        raise SystemExit(f"unknown case {unknown[0]}; groups: {', '.join(GROUPS)}; kinds: {', '.join(kinds)}")
    return list(dict.fromkeys(kinds[name.split("/")[0]] for name in only)) or list(GROUPS), only


def keep(lines: Path, only: list[str], threads: list[int], some: bool, resume: bool) -> list[dict[str, Any]]:
    """Lines of an earlier run that stay: all (--resume), those of other cases and threads (--case), or none."""
    if not lines.exists() or not (some or resume):
        return []
    entries = [json.loads(line) for line in lines.read_text().splitlines() if line.startswith("{")]

    def again(e: dict[str, Any]) -> bool:
        if resume or e.get("threads") not in threads:
            return False
        return any(e["case"] == name or e["case"].startswith(name + "/") for name in only)

    return [e for e in entries if not again(e)]


def write_report(text: str, docs: Path) -> None:
    sys.path.insert(0, str(HERE))
    import report

    report.write(text, docs)


if __name__ == "__main__":
    main()
