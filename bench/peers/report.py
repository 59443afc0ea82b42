"""docs/benchmarks.md and its picture from the lines of peers.py."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

TITLE = """# Speed beside PyTorch, JAX, torchdiffeq and diffrax

Peer's time divided by ours, for the fastest peer of each case: above 1 Hollow is faster. Float32, the same weights and rows on both sides.

"""

METHOD = """
## How it is measured

    make bench-peers                          # all cases, one and two threads; writes BUILD/peers.jsonl and this page
    make bench-peers PEERS='--case ddim'      # measure some cases again: ddim, flows, images, sde, start, logp/43, ...
    make bench-peers PEERS=--resume           # continue after an interruption
    make bench-peers PEERS=--quick            # few repetitions

Each case compares the outputs of both sides before it times them; `agree` is the largest difference relative to the largest value. The two
sides run alternately in one process. With one thread a ratio is the median over rounds of the ratio of processor times; with two threads
it is that of wall times, and each turn begins after a pause of 20 ms, in which idle threads of the other side stop spinning.
"""

SECTIONS = [
    ("f", "The network f", "Sizes a to d are those of `hollow bench ddim`."),
    ("f_d", "f and the exact diagonal D of its Jacobian", "D by forward mode with h held, on every side."),
    ("train", "Training step of a network", "Loss of f and D, and all parameter gradients."),
    ("logp", "log p of a continuous flow", "At equal tolerance both sides use dopri5 at 1e-5. At equal accuracy we use the solver"
     " that `hollow fit` calibrated, and the peer the loosest tolerance at which its mean error and its 99 % quantile are no larger than ours."
     " The row with our method is diffrax with that method, at the loosest tolerance or, where ours are even, with the fewest equal steps of the same accuracy."
     " Errors are against double precision at 1e-9."),
    ("sample", "Samples of a continuous flow", "As above; errors are those of the row, in deviations."),
    ("train_flow", "Likelihood training step of a flow", "RK4 with 8 steps, 512 rows, exact trace, gradients of all parameters."),
    ("sde", "Iteration of Fokker-Planck matching", "The residual of a stochastic equation and its parameter gradients."),
    ("conv", "Convolutions", "100 rows; channels in and out, size of the image. Our times include bringing the rows into panels of 16 and back, which a"
     " network of many layers does once."),
    ("dense", "Dense layers", "100 rows."),
    ("vae", "Training step of an autoencoder", "128 rows of 28 x 28 pixels: loss and all gradients, no optimiser."),
    ("start", "Process start to first result", "log p of ten rows of a model file in two dimensions."),
    ("memory", "Peak memory of that process", ""),
]  # fmt: skip

# Cases of the first table, and their names there.
SUMMARY = {
    "f_d": "f and D, size",
    "train": "training step of a network, size",
    "logp": "log p of a flow, d =",
    "sample": "samples of a flow, d =",
    "train_flow": "training step of a flow, d =",
    "sde": "Fokker-Planck matching, d =",
    "conv": "convolutions, median",
    "dense": "dense layers, median",
    "vae": "training step of an autoencoder,",
    "start": "process start to first result",
}

# From this line on the page is written by hand and kept.
APART = "## Measured apart"


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale or unit == "µs":
            return f"{value / scale:.3g} {unit}"
    return ""


def megabytes(value: float) -> str:
    return f"{value / 2**20:.0f} MB"


def table(lines: list[dict[str, Any]]) -> list[str]:
    """One row for each case and peer; the threads are columns."""
    keys = list(dict.fromkeys((e["case"], e["peer"]) for e in lines))
    counts = sorted({e["threads"] for e in lines})
    errors = any("ours_error" in e for e in lines)
    memory = any("ours_bytes" in e for e in lines)
    names = ["case", "peer"]
    for n in counts:
        names += [f"ours ({n})", f"peer ({n})", f"ratio ({n})"]
    names += ["mean error: ours, peer", "99 %: ours, peer"] if errors else []
    out = ["| " + " | ".join([*names, "agree"]) + " |", "|" + "---|" * (len(names) + 1)]
    for case, peer in keys:
        found = {e["threads"]: e for e in lines if (e["case"], e["peer"]) == (case, peer)}
        first = found[min(found)]
        setting = f", {first['tolerance']:g}" if "tolerance" in first else f", {first['steps']}" if "steps" in first else ""
        cells = [case.split("/", 1)[-1], peer + setting]
        for n in counts:
            e = found.get(n)
            if not e or e["ratio"] is None:
                cells += ["", "", e.get("note", "") if e else ""]
                continue
            kind = "_cpu_s" if n == 1 and "ours_cpu_s" in e else "_s"
            pair = [megabytes(e["ours_bytes"]), megabytes(e["peer_bytes"])] if memory else [
                seconds(e["ours" + kind]), seconds(e["peer" + kind])]  # fmt: skip
            cells += [*pair, f"**{e['ratio']:.2f}**" if e["ratio"] >= 1 else f"{e['ratio']:.2f}"]
        if errors:
            cells += [f"{first[f'ours_error{k}']:.1e}, {first[f'peer_error{k}']:.1e}" if "ours_error" in first else ""
                      for k in ("", "_99")]  # fmt: skip
        agree = first["agree"]
        out.append("| " + " | ".join([*cells, f"{agree:.0e}" if agree is not None else ""]) + " |")
    return out


def closest(lines: list[dict[str, Any]], case: str, threads: int) -> dict[str, Any] | None:
    """The line of the fastest peer that chooses its own method."""
    found = [
        e
        for e in lines
        if e["case"] == case and e["threads"] == threads and e["ratio"] and "our method" not in e["peer"]
    ]
    return min(found, key=lambda e: float(e["ratio"]), default=None)


def summary(lines: list[dict[str, Any]]) -> list[str]:
    """One row for each case that users see, against its fastest peer; convolutions and dense layers by their median."""
    out = ["| case | fastest peer | one thread | two threads |", "|---|---|---|---|"]
    for kind, name in SUMMARY.items():
        all_of_kind = dict.fromkeys(e["case"] for e in lines if e["case"].split("/")[0] == kind)
        rows = []
        for case in all_of_kind:
            one, two = closest(lines, case, 1), closest(lines, case, 2)
            if one and not case.endswith("/tolerance"):
                rows.append(
                    (case.partition("/")[2], one["peer"], float(one["ratio"]), float(two["ratio"]) if two else None)
                )
        if kind in ("conv", "dense") and rows:
            both = [r[3] for r in rows if r[3] is not None]
            rows = [("", rows[0][1], statistics.median(r[2] for r in rows), statistics.median(both) if both else None)]
        for part, peer, first, second in rows:
            label = f"{name} {part.replace('/accuracy', ', equal accuracy')}".strip()
            out.append(f"| {label} | {peer} | {first:.2f} | {'' if second is None else f'{second:.2f}'} |")
    return out


def picture(lines: list[dict[str, Any]]) -> str:
    """A dot for each case and peer with one thread, on a logarithmic axis."""
    shown = [
        e for e in lines if e["threads"] == 1 and e["ratio"] and e["case"].split("/")[0] not in ("start", "memory")
    ]
    cases = list(dict.fromkeys(e["case"] for e in shown))
    families = {"jax": "#1f77b4", "diffrax": "#1f77b4", "torch": "#d62728", "torchdiffeq": "#ff7f0e"}
    row, left, width, top = 16, 190, 560, 56
    low, high = 0.4, max(16.0, max((e["ratio"] for e in shown), default=1))

    def place(ratio: float) -> float:
        return left + width * math.log(min(max(ratio, low), high) / low) / math.log(high / low)

    height = top + row * len(cases) + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 30} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{left + width + 30}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="18" font-size="13">peer\'s time over ours, one thread (right of the line: ours is faster)</text>',
    ]  # fmt: skip
    for i, (name, label) in enumerate((("jax", "JAX, diffrax"), ("torch", "PyTorch"), ("torchdiffeq", "torchdiffeq"))):
        out.append(f'<circle cx="{left + 6 + 120 * i}" cy="34" r="4" fill="{families[name]}"/>')
        out.append(f'<text x="{left + 14 + 120 * i}" y="38">{label}</text>')
    for tick in (0.5, 1, 2, 4, 8, 16):
        x = place(tick)
        style = 'stroke="#000"' if tick == 1 else 'stroke="#ddd"'
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 8}" y2="{height - 24}" {style}/>')
        out.append(f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle">{tick:g}</text>')
    for i, case in enumerate(cases):
        y = top + row * i + 4
        out.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{case}</text>')
        for e in shown:
            if e["case"] == case:
                colour = families[e["peer"].split()[0].split(".")[0]]
                out.append(f'<circle cx="{place(e["ratio"]):.1f}" cy="{y}" r="4" fill="{colour}" fill-opacity="0.8"/>')
    return "\n".join([*out, "</svg>"]) + "\n"


def write(text: str, docs: Path) -> None:
    entries = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    machine = next((e for e in entries if "machine" in e), None)
    lines = [e for e in entries if "case" in e]
    page = TITLE + "\n".join(summary(lines)) + "\n\n![Peer's time over ours, by case](benchmarks.svg)\n" + METHOD
    if machine:
        page += f"\nMachine: {machine['machine']}, {machine['isa']} instructions; {machine['versions']}."
        page += (
            f" Other processes kept {machine['load']:.0f} threads busy when it began." if machine["load"] > 1 else ""
        )
        page += " A run with --quick: few repetitions, few rows.\n" if machine["quick"] else "\n"
    for key, title, note in SECTIONS:
        own = [e for e in lines if e["case"].split("/")[0] == key]
        if own:
            page += f"\n## {title}\n\n" + (note + "\n\n" if note else "") + "\n".join(table(own)) + "\n"
    before = (docs / "benchmarks.md").read_text() if (docs / "benchmarks.md").exists() else ""
    kept = before[before.index(APART) :] if APART in before else ""
    (docs / "benchmarks.md").write_text(page + ("\n" + kept if kept else ""))
    (docs / "benchmarks.svg").write_text(picture(lines))
