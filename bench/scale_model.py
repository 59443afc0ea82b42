#!/usr/bin/env python3
"""A model of the time of a training step on several ranks, fitted to `hollow bench scale`.

    build/hollow bench scale --iterations 3 > docs/scale.jsonl     # longer runs double the steps of the solver, each case at its own time
    bench/scale_model.py docs/scale.jsonl docs/scale.md docs/scale.svg

    step = (a P + b) rows + c P + exchanges (latency + delay) + bytes / bandwidth

P: parameters; rows: of the batch, on the busiest rank; a, b, c and a time to start are fitted to the processor time outside of exchanges,
latency and bandwidth to the time in them. Writes the part of docs/scale.md between its two marks, and a picture of what is predicted. Needs numpy.
"""
import json
import math
import sys

import numpy as np

SHARE, NEW = 64, dict(latency=20e-6, bandwidth=1.25e9)  # a network of 10 Gbit/s


def rows_of(batch, ranks):
    shares = math.ceil(batch / SHARE)
    return min(batch, SHARE * math.ceil(shares / ranks))


def fit(cases):
    iterations = np.array([c["iterations"] for c in cases])
    rows = np.array([rows_of(c["batch"], c["ranks"]) for c in cases])
    parameters = np.array([c["parameters"] for c in cases])
    times = np.array([c["compute_seconds"] for c in cases])
    design = np.stack([parameters * rows * iterations, rows * iterations, parameters * iterations, np.ones(len(cases))], 1)
    scale = 1 / times  # relative errors count
    names, keep = ["work", "row", "serial", "start"], [0, 1, 2, 3]
    while True:  # least squares without negative costs
        norm = np.linalg.norm(design, axis=0)
        found = np.linalg.lstsq(design[:, keep] / norm[keep] * scale[:, None], times * scale, rcond=None)[0] / norm[keep]
        if (found >= 0).all():
            break
        keep.pop(int(np.argmin(found * norm[keep])))
    costs = dict.fromkeys(names, 0.0) | {names[k]: float(v) for k, v in zip(keep, found)}
    return costs, design @ np.array([costs[n] for n in names])


def fit_network(cases):
    several = [c for c in cases if c["ranks"] > 1]
    waits = np.array([c["gathered_seconds"] - c["delay"] * c["exchanges"] for c in several])
    design = np.array([[c["exchanges"], c["exchanged_bytes"]] for c in several], float)
    norm = np.linalg.norm(design, axis=0)
    each, byte = np.linalg.lstsq(design / norm, waits, rcond=None)[0] / norm
    return dict(latency=float(max(each, 0)), bandwidth=float(1 / max(byte, 1e-12)))


def row_seconds(costs, parameters):
    return costs["work"] * parameters + costs["row"]


def step(costs, parameters, batch, ranks, network):
    """Seconds of one step: all ranks exchange the gradients of all, and then whether to go on."""
    compute = row_seconds(costs, parameters) * rows_of(batch, ranks) + parameters * costs["serial"]
    if ranks == 1:
        return compute
    return compute + 2 * network["latency"] * math.log2(ranks) + (ranks - 1) * 8 * parameters / network["bandwidth"]


def picture(path, costs, parameters):
    counts, width, height, left, low = [1, 2, 4, 8, 16, 32, 64], 640, 400, 60, 350
    lines = [("batch 1,024", "#1d63d1", lambda k: 1024), ("batch 4,096", "#c2571a", lambda k: 4096), ("512 rows a rank", "#2a8c4a", lambda k: 512 * k)]

    def x(k):
        return left + (width - left - 150) * math.log2(k) / 6

    def y(v):
        return low - (low - 30) * math.log2(max(v, 1)) / 6

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">', '<rect width="100%" height="100%" fill="white"/>']
    for k in counts:
        out.append(f'<text x="{x(k):.1f}" y="{low + 18}" text-anchor="middle">{k}</text><text x="{left - 8}" y="{y(k) + 4:.1f}" text-anchor="end">{k}</text>')
        out.append(f'<path d="M{left} {y(k):.1f}H{x(64):.1f}" stroke="#e3e7ec"/>')
    out.append(f'<path d="M{x(1)} {y(1)}L{x(64):.1f} {y(64):.1f}" stroke="#9aa6b5" stroke-dasharray="4 4" fill="none"/>')
    for at, (name, colour, batch) in enumerate(lines):
        gains = [step(costs, parameters, batch(k), 1, NEW) / step(costs, parameters, batch(k), k, NEW) for k in counts]
        points = " ".join(f"{x(k):.1f},{y(g):.1f}" for k, g in zip(counts, gains))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/><text x="{x(64) + 8:.1f}" y="{y(gains[-1]) + 4 + 16 * (at == 0):.1f}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{(left + x(64)) / 2:.1f}" y="{low + 40}" text-anchor="middle">ranks</text><text x="14" y="20">gain over one rank, {parameters:,.0f} parameters, 10 Gbit/s</text></svg>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def report(cases, costs, predicted, network):
    parameters = max(c["parameters"] for c in cases)
    text = ["| ranks | batch | parameters | delay, ms | compute, s | model | gain | exchanges | MB received | waiting, s | of it, delays |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    one = {}
    for c, p in zip(cases, predicted):
        if c["ranks"] == 1:
            one[c["batch"], c["parameters"]] = c["compute_seconds"]
        gain = one[c["batch"], c["parameters"]] / c["compute_seconds"]
        text.append(f"| {c['ranks']} | {c['batch']:,} | {c['parameters']:,.0f} | {1000 * c['delay']:.0f} | {c['compute_seconds']:.2f} | {p:.2f} | {gain:.2f} | {c['exchanges']:.0f} | {c['exchanged_bytes'] / 1e6:.1f} | {c['gathered_seconds']:.2f} | {c['delay'] * c['exchanges']:.2f} |")
    text += ["", f"Compute is the processor time of rank 0 outside of exchanges in {cases[0]['iterations']} iterations, start-up and validations included. Fitted: {1e9 * costs['work']:.2f} ns for each parameter and row, {1e6 * costs['row']:.0f} microseconds for each row, "
             f"{1e9 * costs['serial']:.1f} ns for each parameter and step, {costs['start']:.2f} s to start; largest error of the model {100 * max(abs(p / c['compute_seconds'] - 1) for c, p in zip(cases, predicted)):.0f} %. "
             f"Exchanges on this machine: {1e3 * network['latency']:.1f} ms each, which is mostly waiting for the slower rank, and {network['bandwidth'] / 1e9:.2f} GB/s.", "",
             f"Predicted for a network of 20 microseconds and 10 Gbit/s, {parameters:,.0f} parameters (size b):", "", "| ranks | batch | step, s | gain | rows a second |", "|---|---|---|---|---|"]
    for ranks, batch in [(1, 1024), (4, 1024), (16, 1024), (64, 1024), (64, 4096), (64, 32768)]:
        t = step(costs, parameters, batch, ranks, NEW)
        text.append(f"| {ranks} | {batch:,} | {t:.3f} | {step(costs, parameters, batch, 1, NEW) / t:.1f} | {batch / t:,.0f} |")
    hours = 1e9 / (32768 / step(costs, parameters, 32768, 64, NEW)) / 3600
    text += ["", f"One pass over 10^9 rows of 43 columns (344 GB) is {1e9 * row_seconds(costs, parameters) / 3600:,.0f} hours of one core; on 64 ranks with batches of 32,768 rows {hours:.1f} hours. Memory of a rank is that of the sample of 100,000 rows and of "
             f"its share of a batch. An exchange brings every rank the gradients of all others, {8 * parameters / 1e6:.1f} MB from each, so its time grows with the ranks: at 64 ranks it is {63 * 8 * parameters / NEW['bandwidth']:.2f} s, and only batches whose share "
             "takes longer than that are worth so many ranks. Batches of 1,024 rows are 16 shares: more than 16 ranks add only exchanges.", "", "![Predicted gain against ranks](scale.svg)"]
    return "\n".join(text)


def main():
    source, page, drawing = sys.argv[1:4]
    with open(source, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    costs, predicted = fit(cases)
    network = fit_network(cases)
    with open(page, encoding="utf-8") as file:
        before, rest = file.read().split("<!-- model -->\n", 1)
        after = rest.split("<!-- end of model -->", 1)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{before}<!-- model -->\n{report(cases, costs, predicted, network)}\n<!-- end of model -->{after}")
    picture(drawing, costs, max(c["parameters"] for c in cases))


main()
