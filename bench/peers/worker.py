"""All cases of one number of threads, in a process that has no more processors than that: one line of JSON a case."""

from __future__ import annotations

import argparse
import os
import sys


def describe(quick: bool) -> None:
    """The machine, its load and the versions, as the first line."""
    import json
    from importlib.metadata import version
    from pathlib import Path

    from hollownet._library import lib

    text = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")), "")
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "torchdiffeq", "jax", "diffrax"))
    isa = os.environ.get("HOLLOW_BENCH_ISA") or lib.hl_context_isa(None).decode()
    entry = {"machine": model, "isa": isa, "versions": packages, "load": os.getloadavg()[0], "quick": quick}
    print(json.dumps(entry), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cases", default="")
    parser.add_argument("--only", default="", help="beginnings of names of cases")
    parser.add_argument("--done", default="", help="a file of lines: what is in it is not measured again")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each pair")
    parser.add_argument("--models", default="")
    parser.add_argument("--program", default="")
    parser.add_argument("--isa", choices=["avx2", "avx512"], help="of nets, images and sde, on both sides")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.threads :])
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if options.isa:
        os.environ["HOLLOW_BENCH_ISA"] = options.isa
        os.environ["ONEDNN_MAX_CPU_ISA"] = {"avx2": "AVX2", "avx512": "AVX512_CORE"}[options.isa]
        os.environ["ATEN_CPU_CAPABILITY"] = options.isa
        os.environ["XLA_FLAGS"] = f"--xla_cpu_max_isa={options.isa.upper()}"
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))

    import importlib
    import json
    from pathlib import Path

    import torch
    from measure import Bench

    torch.set_num_threads(options.threads)
    entries = [json.loads(line) for line in Path(options.done).read_text().splitlines()] if options.done else []
    if not any("machine" in e for e in entries):
        describe(options.quick)
    done = frozenset((e["case"], e["peer"]) for e in entries if e.get("threads") == options.threads)
    only = tuple(name for name in options.only.split(",") if name)
    bench = Bench(options.threads, 0.4 if options.quick else options.seconds, only, done)
    for name in options.cases.split(","):
        importlib.import_module("case_" + name).run(bench, options)


if __name__ == "__main__":
    main()
