#!/usr/bin/env python3
"""Density of tables by `hollow fit`, scikit-learn's Gaussian mixture and zuko's neural spline flow: one line of JSON for each pair.

    density.py --program build/hollow TABLE.npz ...

A table is a npz file with the arrays train, valid and test. All models see the same rows and choose by the same validation rows. The
spline flow has as much CPU time as `hollow fit` took, on one thread; the mixture takes what it takes. `gain` is by how many nats a test row is
more likely under our model, `gain_error` the standard error of the paired differences.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

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
        mean, deviation = arrays["train"].mean(0), arrays["train"].std(0)
        self.train, self.valid, self.test = ((arrays[k] - mean) / deviation for k in ("train", "valid", "test"))
        self.scale = -float(np.log(deviation).sum())


def by_hollow(program: str, table: Table) -> tuple[np.ndarray, float]:
    """log p of the test rows, and the CPU seconds of the fit."""
    with tempfile.TemporaryDirectory() as directory:
        model, result = f"{directory}/m.hollow", f"{directory}/logp.npy"
        arrays = [f"{table.path}:{name}" for name in ("train", "valid", "test")]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        common = ["--threads", "1", "--quiet"]
        subprocess.run([program, "fit", arrays[0], "--valid", arrays[1], "-o", model, *common], check=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        subprocess.run([program, "logp", model, arrays[2], "--out", result, *common], check=True)
        return np.load(result).ravel(), seconds


def by_mixture(table: Table) -> tuple[np.ndarray, float]:
    start, best, result = time.process_time(), -np.inf, None
    for parts in SIZES:
        if parts > 1 and parts * ROWS_PER_PART > len(table.train):
            break
        model = GaussianMixture(parts, random_state=0, max_iter=200).fit(table.train)
        score = model.score(table.valid)
        if score > best:
            best, result = score, model.score_samples(table.test)
    assert result is not None
    return result + table.scale, time.process_time() - start


def by_splines(table: Table, seconds: float) -> tuple[np.ndarray, float]:
    """A neural spline flow of three transforms, Adam with a rate that falls to 0 over the time it has, the best validation kept."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    flow = zuko.flows.NSF(table.train.shape[1], transforms=3, hidden_features=(64, 64))
    train, valid, test = (torch.tensor(x, dtype=torch.float32) for x in (table.train, table.valid, table.test))
    optimizer = torch.optim.Adam(flow.parameters(), 1e-3)
    start, best, kept, step = time.process_time(), np.inf, None, 0
    while (used := time.process_time() - start) < seconds or kept is None:
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * max(1 - used / max(seconds, 1e-9), 0.01)
        batch = train[torch.randint(len(train), (min(256, len(train)),))]
        loss = -flow().log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            with torch.no_grad():
                held = -float(flow().log_prob(valid).mean())
            if held < best:
                best, kept = held, {k: v.clone() for k, v in flow.state_dict().items()}
    flow.load_state_dict(kept)
    with torch.no_grad():
        logp = flow().log_prob(test).numpy().astype(np.float64)
    return logp + table.scale, time.process_time() - start


def print_line(table: Table, peer: str, ours: tuple[np.ndarray, float], theirs: tuple[np.ndarray, float]) -> None:
    gain = ours[0] - theirs[0]
    entry = {
        "case": "density",
        "peer": peer,
        "threads": 1,
        "data": table.name,
        "ours_nll": -ours[0].mean(),
        "peer_nll": -theirs[0].mean(),
        "gain": gain.mean(),
        "gain_error": gain.std() / len(gain) ** 0.5,
        "ours_cpu_s": ours[1],
        "peer_cpu_s": theirs[1],
        "ratio": theirs[1] / ours[1],
    }
    print(json.dumps({k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in entry.items()}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/hollow")
    parser.add_argument("tables", type=Path, nargs="+")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    for path in options.tables:
        table = Table(path)
        ours = by_hollow(options.program, table)
        print_line(table, "scikit-learn GaussianMixture", ours, by_mixture(table))
        print_line(table, "zuko NSF", ours, by_splines(table, ours[1]))


if __name__ == "__main__":
    main()
