#!/usr/bin/env python3
"""Density of tables by `hollow fit`, scikit-learn's Gaussian mixture, a kernel density estimate and flows of zuko and normflows: one line of JSON for each pair.

    density.py --program build/hollow [--results DIRECTORY] [--peers mixture,kde,nsf,maf,normflows] TABLE.npz ...
    density.py --results DIRECTORY --markdown all|NAME,NAME,...

A table is a npz file with the arrays train, valid and test, and truth if the density is known. All models see the same rows and choose by the same validation rows. Each
flow has as much CPU time as `hollow fit` took, on one thread; the others take what they take. `gain` is by how many nats a test row is
more likely under our model, `gain_error` the standard error of the paired differences. Tables with fewer numbers come first. With --results, log p of the test rows is kept
in DIRECTORY and what is there already is not run again; --markdown runs nothing and prints a table of it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import normflows
import numpy as np
import torch
import zuko
from sklearn.mixture import GaussianMixture

SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
ROWS_PER_PART = 4


class Table:
    """Arrays of a file, standardised by the rows of training; `scale` takes log p back to the units of the data."""

    def __init__(self, path: Path) -> None:
        arrays = np.load(path)
        self.path, self.name = path, path.stem
        rows = {k: arrays[k].astype(np.float64) for k in ("train", "valid", "test")}
        mean, deviation = rows["train"].mean(0), rows["train"].std(0)
        self.train, self.valid, self.test = ((x - mean) / deviation for x in rows.values())
        self.scale = -float(np.log(deviation).sum())
        self.truth = arrays["truth"].ravel() if "truth" in arrays else None


def by_hollow(program: str, table: Table, more: list[str]) -> tuple[np.ndarray, float]:
    """log p of the test rows, and the CPU seconds of the fit."""
    with tempfile.TemporaryDirectory() as directory:
        model, result = f"{directory}/m.hollow", f"{directory}/logp.npy"
        arrays = [f"{table.path}:{name}" for name in ("train", "valid", "test")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        common = ["--threads", "1", "--quiet"]
        subprocess.run([program, "fit", arrays[0], "--valid", arrays[1], "-o", model, *common, *more], check=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        subprocess.run([program, "logp", model, arrays[2], "--out", result, *common], check=True)
        return np.load(result).ravel(), seconds


def by_mixture(table: Table) -> tuple[np.ndarray, float]:
    start, best, result = time.process_time(), -np.inf, None
    for parts in SIZES:
        for kind in ("full", "diag"):
            if parts > 1 and parts * ROWS_PER_PART > len(table.train):
                continue
            model = GaussianMixture(parts, covariance_type=kind, random_state=0, max_iter=200).fit(table.train)
            score = model.score(table.valid)
            if score > best:
                best, result = score, model.score_samples(table.test)
    assert result is not None
    return result + table.scale, time.process_time() - start


def kernel_logp(train: np.ndarray, rows: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """log p of rows by Gaussian kernels of every width: widths x rows."""
    n, d = train.shape
    out = np.empty((len(widths), len(rows)))
    own = (train**2).sum(1)
    for first in range(0, len(rows), 500):
        part = rows[first : first + 500]
        square = np.maximum((part**2).sum(1)[:, None] + own - 2 * part @ train.T, 0)
        least = square.min(1, keepdims=True)
        for k, width in enumerate(widths):
            sums = np.exp((least - square) / (2 * width**2)).sum(1)
            out[k, first : first + 500] = np.log(sums) - least[:, 0] / (2 * width**2) - np.log(n) - d * np.log(width) - d / 2 * np.log(2 * np.pi)
    return out


def by_kernels(table: Table) -> tuple[np.ndarray, float]:
    """What scikit-learn's KernelDensity gives, on standardised columns; the validation rows choose one of 12 widths."""
    start = time.process_time()
    widths = np.geomspace(0.02, 1.5, 12)
    best = widths[kernel_logp(table.train, table.valid, widths).mean(1).argmax()]
    return kernel_logp(table.train, table.test, np.array([best]))[0] + table.scale, time.process_time() - start


Flow = tuple[torch.nn.Module, Callable[[torch.Tensor], torch.Tensor]]  # the parameters, and log p of rows


def spline_flow(dim: int) -> Flow:
    flow = zuko.flows.NSF(dim, transforms=3, hidden_features=(64, 64))
    return flow, lambda x: flow().log_prob(x)


def autoregressive_flow(dim: int) -> Flow:
    flow = zuko.flows.MAF(dim, transforms=3, hidden_features=(64, 64))
    return flow, lambda x: flow().log_prob(x)


def other_spline_flow(dim: int) -> Flow:
    layers: list[torch.nn.Module] = []
    for _ in range(3):
        layers += [normflows.flows.AutoregressiveRationalQuadraticSpline(dim, 2, 64), normflows.flows.LULinearPermute(dim)]
    flow = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(dim, trainable=False), layers)
    return flow, flow.log_prob


def by_flow(make: Callable[[int], Flow], table: Table, seconds: float) -> tuple[np.ndarray, float]:
    """A flow of three transforms, Adam with a rate that falls to 0 over the time it has, the best validation kept."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    flow, logp_of = make(table.train.shape[1])
    train, valid, test = (torch.tensor(x, dtype=torch.float32) for x in (table.train, table.valid, table.test))
    optimizer = torch.optim.Adam(flow.parameters(), 1e-3)
    start, best, kept, step = time.process_time(), np.inf, None, 0
    while (used := time.process_time() - start) < seconds or kept is None:
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * max(1 - used / max(seconds, 1e-9), 0.01)
        batch = train[torch.randint(len(train), (min(256, len(train)),))]
        loss = -logp_of(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            with torch.no_grad():
                held = -float(logp_of(valid).mean())
            if held < best:
                best, kept = held, {k: v.clone() for k, v in flow.state_dict().items()}
    flow.load_state_dict(kept)
    with torch.no_grad():
        logp = logp_of(test).numpy().astype(np.float64)
    return logp + table.scale, time.process_time() - start


FLOWS = {"nsf": spline_flow, "maf": autoregressive_flow, "normflows": other_spline_flow}
PEERS = {
    "mixture": "scikit-learn GaussianMixture",
    "kde": "kernel density estimate",
    "nsf": "zuko NSF",
    "maf": "zuko MAF",
    "normflows": "normflows autoregressive spline flow",
}
TITLES = {"mixture": "Gaussian mixture", "kde": "kernels", "nsf": "NSF", "maf": "MAF", "normflows": "normflows"}
Score = tuple[np.ndarray, float]


def recall(directory: Path | None, table: Table, who: str, run: Callable[[], Score]) -> Score:
    """log p of the test rows and CPU seconds, of this run or of an earlier one."""
    path = directory / f"{table.name}.{who}.npz" if directory else None
    if path and path.exists():
        kept = np.load(path)
        return kept["logp"], float(kept["seconds"])
    logp, seconds = run()
    if path:
        unfinished = path.with_name("unfinished.npz")
        np.savez(unfinished, logp=logp, seconds=seconds, truth=table.truth if table.truth is not None else np.array([]))
        unfinished.rename(path)
    return logp, seconds


def line_of(name: str, peer: str, ours: Score, theirs: Score) -> dict[str, Any]:
    gain = ours[0] - theirs[0]
    return {
        "case": "density",
        "peer": PEERS[peer],
        "threads": 1,
        "data": name,
        "ours_nll": -ours[0].mean(),
        "peer_nll": -theirs[0].mean(),
        "gain": gain.mean(),
        "gain_error": gain.std() / len(gain) ** 0.5,
        "ours_cpu_s": ours[1],
        "peer_cpu_s": theirs[1],
        "ratio": theirs[1] / ours[1],
    }


def print_markdown(directory: Path, names: list[str] | None) -> None:
    """Of what is in a directory of results: of these tables, in their order, or of all, with the peers that any of them has."""
    names = names or sorted(path.name[: -len(".ours.npz")] for path in directory.glob("*.ours.npz"))
    peers = [peer for peer in PEERS if any((directory / f"{name}.{peer}.npz").exists() for name in names)]
    print("| table | `hollow fit` (gap) | CPU s | " + "".join(f"{TITLES[peer]} | gain | " for peer in peers).rstrip() + "\n" + "|---" * (3 + 2 * len(peers)) + "|")
    for name in names:
        kept = np.load(directory / f"{name}.ours.npz")
        ours = (kept["logp"], float(kept["seconds"]))
        gap = f" ({(kept['truth'] - ours[0]).mean():.3f})" if kept["truth"].size else ""
        cells = [name, f"{-ours[0].mean():.3f}{gap}", f"{ours[1]:.0f}"]
        for peer in peers:
            other = directory / f"{name}.{peer}.npz"
            if not other.exists():
                cells += ["", ""]
                continue
            theirs = np.load(other)
            line = line_of(name, peer, ours, (theirs["logp"], float(theirs["seconds"])))
            cells += [f"{line['peer_nll']:.3f}", f"{line['gain']:.3f} +- {line['gain_error']:.3f}"]
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/hollow")
    parser.add_argument("--fit", default="", help="options of hollow fit, such as '--recipe fast'")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--markdown", metavar="NAMES")
    parser.add_argument("tables", type=Path, nargs="*")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
    if options.markdown and options.results:
        print_markdown(options.results, None if options.markdown == "all" else options.markdown.split(","))
        return
    for table in sorted((Table(path) for path in options.tables), key=lambda t: t.train.size):
        ours = recall(options.results, table, "ours", partial(by_hollow, options.program, table, options.fit.split()))
        runs = {"mixture": partial(by_mixture, table), "kde": partial(by_kernels, table)}
        runs |= {name: partial(by_flow, make, table, ours[1]) for name, make in FLOWS.items()}
        for peer in options.peers.split(","):
            entry = line_of(table.name, peer, ours, recall(options.results, table, peer, runs[peer]))
            print(json.dumps({k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in entry.items()}), flush=True)


if __name__ == "__main__":
    main()
