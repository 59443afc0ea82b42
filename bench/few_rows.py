#!/usr/bin/env python3
"""Few rows: `hollow fit` and scikit-learn's Gaussian mixture on random splits of wine, breast cancer and iris.

    bench/few_rows.py build/hollow RESULTS.jsonl [--splits 20] [--only iris,wine,cancer] [--markdown]

The tables are those that scikit-learn comes with, dequantised: every column gets uniform noise of the width of its last decimal, the same in all
splits. A split takes four fifths of the rows for training, at random, and the others for the test. The mixture has 1 to 8 parts of full, tied or
diagonal covariances on standardised columns, chosen by five-fold cross-validation over the training rows and fitted to all of them; `hollow fit` has its
defaults, on one thread. Every split is one line of RESULTS.jsonl, and those that are there are not run again. Prints, for each table, the means of test -log p, the mean gain and its standard
error over the splits (these share rows, so it is a little too small). Needs numpy and scikit-learn.
"""
import argparse
import json
import os
import resource
import subprocess
import tempfile
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
SIZES = [1, 2, 3, 4, 5, 6, 8]
KINDS = ["full", "tied", "diag"]


def decimals(column):
    """The digits after the point that the values of a column have."""
    return next(d for d in range(12) if np.allclose(column, np.round(column, d), rtol=0, atol=1e-9 * 10.0**-d))


def load(name):
    x = TABLES[name]().data.astype(float)
    noise = np.random.default_rng(20261117).uniform(-0.5, 0.5, x.shape)
    return x + noise * [10.0 ** -decimals(x[:, i]) for i in range(x.shape[1])]


def by_mixture(train, test):
    """log p of the test rows by the mixture that cross-validation chooses, and its name."""
    mean, deviation = train.mean(0), train.std(0)
    train, test = (train - mean) / deviation, (test - mean) / deviation
    best, chosen = -np.inf, None
    for kind in KINDS:
        for parts in SIZES:
            score = 0.0
            for fit, held in KFold(5, shuffle=True, random_state=0).split(train):
                model = GaussianMixture(parts, covariance_type=kind, random_state=0, max_iter=200).fit(train[fit])
                score += model.score(train[held]) * len(held)
            if score > best:
                best, chosen = score, (parts, kind)
    model = GaussianMixture(chosen[0], covariance_type=chosen[1], random_state=0, max_iter=200).fit(train)
    return model.score_samples(test) - np.log(deviation).sum(), f"{chosen[0]} {chosen[1]}"


def by_hollow(program, train, test):
    """log p of the test rows, and CPU seconds of the fit."""
    with tempfile.TemporaryDirectory() as d:
        np.save(f"{d}/train.npy", train)
        np.save(f"{d}/test.npy", test)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([program, "fit", f"{d}/train.npy", "-o", f"{d}/m.hollow", "--threads", "1", "--quiet"], check=True)
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        subprocess.run([program, "logp", f"{d}/m.hollow", f"{d}/test.npy", "--out", f"{d}/p.npy", "--threads", "1", "--quiet"], check=True)
        return np.load(f"{d}/p.npy").ravel(), seconds


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def show(lines, markdown):
    if markdown:
        print("| table | splits | `hollow fit` | Gaussian mixture | gain | CPU s of a fit |\n|---|---|---|---|---|---|")
    for name in TABLES:
        own = [line for line in lines if line["table"] == name]
        if len(own) < 2:
            continue
        ours, theirs = (np.array([line[k] for line in own]) for k in ("ours", "mixture"))
        gain, error = (theirs - ours).mean(), (theirs - ours).std(ddof=1) / len(own) ** 0.5
        cells = [name, str(len(own)), f"{ours.mean():.3f}", f"{theirs.mean():.3f}", f"{gain:.3f} +- {error:.3f}"]
        cells.append(f"{np.mean([line['seconds'] for line in own]):.0f}")
        print("| " + " | ".join(cells) + " |" if markdown else " ".join(cells))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hollow")
    parser.add_argument("results")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--markdown", action="store_true")
    a = parser.parse_args()
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    done = {(line["table"], line["split"]) for line in read(a.results)}
    for split in range(a.splits):
        for name in a.only.split(","):
            if (name, split) in done:
                continue
            x = load(name)
            order = np.random.default_rng([split, len(x)]).permutation(len(x))
            test, train = x[order[: len(x) // 5]], x[order[len(x) // 5 :]]
            ours, seconds = by_hollow(a.hollow, train, test)
            theirs, chosen = by_mixture(train, test)
            line = {"table": name, "split": split, "ours": -ours.mean(), "mixture": -theirs.mean(), "chosen": chosen, "seconds": seconds}
            with open(a.results, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    show(read(a.results), a.markdown)


if __name__ == "__main__":
    main()
