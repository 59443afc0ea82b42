#!/usr/bin/env python3
"""Eight tables that chose nothing in the recipe of `hollow fit`, and a race on them with scikit-learn's Gaussian mixture.

    bench/fresh_tables.py build/hollow DIRECTORY [--only NAMES] [--seed 20261116]

Writes DIRECTORY/NAME.npz with the arrays train, valid (a tenth of the rows) and test (4,000 rows) for each table, fits it once by `hollow fit` with
its defaults on one thread, and by Gaussian mixtures of 1 to 64 parts with full or diagonal covariances on the standardised columns, of which the
validation rows choose one. Whole numbers have uniform noise of one step's width in the file itself, and zeros of incomes are spread over [0, 100), so
that both models see the same numbers and no column has repeated values. Prints one line of JSON for each table: mean test -log p in nats, and by how
much a test row is more likely under our model, with the standard error of the paired differences; the same for the chosen mixture fitted again to
training and validation rows together (`hollow fit` chooses by cross-validation over both, up to 5,000 rows). Needs numpy and scikit-learn.
"""
import argparse
import json
import os
import resource
import subprocess
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
ROWS_PER_PART = 4
TEST_ROWS = 4000


def spread(rng, counts):
    """Whole numbers with uniform noise of one step's width."""
    return counts + rng.uniform(-0.5, 0.5, counts.shape)


def household(rng, n):
    """Income (lognormal, 8 % zeros), age, persons, share of rent, wealth (of both signs)."""
    age = np.clip(np.where(rng.random(n) < 0.6, rng.normal(38, 9, n), rng.normal(66, 8, n)), 18, 95)
    income = np.exp(10 + 0.6 * np.sin((age - 18) / 20) + 0.55 * rng.normal(size=n))
    share = rng.beta(2 + 4 * (income < 20000), 6, n)
    wealth = (age - 25) * income / 20 * np.exp(0.8 * rng.normal(size=n)) - 8000 * rng.exponential(size=n)
    persons = 1 + rng.poisson(np.where(age < 55, 1.8, 0.6))
    income = np.where(rng.random(n) < 0.08, rng.uniform(0, 100, n), income)
    return np.stack([income, spread(rng, np.floor(age)), spread(rng, persons), share, wealth], 1)


def visits(rng, n):
    """Four counts: visits (negative binomial), pages, errors, days since the last visit."""
    rate = rng.gamma(1.5, 8, n)
    seen = rng.poisson(rate)
    pages = rng.poisson(3 * seen + 1)
    errors = rng.binomial(pages, rng.beta(1, 12, n))
    days = rng.geometric(1 / (2 + 60 / (1 + seen)))
    return spread(rng, np.stack([seen, pages, errors, days], 1).astype(float))


def shares(rng, n):
    """Four of the five shares of a whole, from three kinds of households."""
    kinds = np.array([[8.0, 4, 2, 1, 1], [1, 1, 6, 3, 2], [0.8, 2, 2, 9, 1.5]])
    weights = rng.gamma(kinds[rng.choice(3, n, p=[0.5, 0.3, 0.2])])
    return (weights / weights.sum(1, keepdims=True))[:, :4]


def trips(rng, n):
    """Time of day in hours, length of a trip in km, its minutes."""
    peak = rng.choice(4, n, p=[0.35, 0.35, 0.2, 0.1])
    hour = np.where(peak == 3, rng.uniform(0, 24, n), rng.normal(np.array([7.8, 17.4, 12.5, 0])[peak], np.array([0.7, 1.2, 2, 1])[peak])) % 24
    length = rng.gamma(1.3, 6, n) + 0.3
    jam = 1 + 0.9 * np.exp(-((hour - 8) ** 2)) + 0.7 * np.exp(-((hour - 17.5) ** 2) / 3)
    minutes = 3 + length * 1.6 * jam * np.exp(0.15 * rng.normal(size=n)) + rng.exponential(2, n)
    return np.stack([hour, length, minutes], 1)


def ridge(rng, n):
    """A helix with noise of a varying width, and a column that is its curve's sine."""
    turn = rng.uniform(0, 3 * np.pi, n)
    width = 0.05 + 0.03 * turn / np.pi
    points = [turn * np.cos(turn) / 3, turn * np.sin(turn) / 3, turn / 2 + 0.3 * rng.normal(size=n), np.sin(2 * turn)]
    return np.stack(points, 1) + width[:, None] * rng.normal(size=(n, 4))


def tails(rng, n):
    """Six returns of a common volatility, with Laplace and t_2.5 noise."""
    volatility = np.exp(0.7 * rng.normal(size=n))
    common = volatility * rng.normal(size=n)
    columns = [b * common + volatility * rng.laplace(size=n) for b in (1, 0.8, 0.5)]
    columns += [b * common + 0.6 * rng.standard_t(2.5, n) for b in (1.2, -0.7, 0)]
    return np.stack(columns, 1)


def bimodal(rng, n):
    """Twelve columns in pairs; each pair has two modes, on a curve, and neighbouring pairs prefer the same one."""
    side = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    columns = []
    for pair in range(6):
        side = np.where(rng.random(n) < 0.75, side, -side)
        first = 1.6 * side + 0.6 * rng.normal(size=n)
        columns += [first, 0.4 * first**2 * side + 0.5 * rng.normal(size=n) + 0.3 * columns[-1] * (pair > 0) if columns else 0.5 * rng.normal(size=n)]
    return np.stack(columns, 1)


def wide(rng, n):
    """25 columns of four factors, one of them skewed; every third column is exp of what it would be."""
    loadings = np.random.default_rng(5).normal(size=(4, 25))
    factors = rng.normal(size=(n, 4))
    factors[:, 3] = rng.exponential(size=n) - 1
    x = factors @ loadings + 0.7 * rng.standard_t(6, (n, 25))
    x[:, ::3] = np.exp(0.35 * x[:, ::3])
    return x


TABLES = {household: 3000, visits: 2000, shares: 1500, trips: 4000, ridge: 5000, tails: 3000, bimodal: 6000, wide: 600}


def by_hollow(program, path):
    """log p of the test rows, and the CPU seconds of the fit."""
    model, result = path + ".hollow", path + ".logp.npy"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    fit = [program, "fit", path + ":train", "--valid", path + ":valid", "-o", model, "--threads", "1", "--quiet"]
    subprocess.run(fit, check=True)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    subprocess.run([program, "logp", model, path + ":test", "--out", result, "--threads", "1", "--quiet"], check=True)
    return np.load(result).ravel(), seconds


def by_mixture(data):
    """log p of the test rows by the mixture that the validation rows choose, and by one like it fitted to these rows too; its name; CPU seconds."""
    mean, deviation = data["train"].mean(0), data["train"].std(0)
    train, valid, test = ((data[k] - mean) / deviation for k in ("train", "valid", "test"))
    start, best, kept, chosen = time.process_time(), -np.inf, None, None
    for parts in SIZES:
        for kind in ("full", "diag"):
            if parts > 1 and parts * ROWS_PER_PART > len(train):
                continue
            model = GaussianMixture(parts, covariance_type=kind, random_state=0, max_iter=200).fit(train)
            score = model.score(valid)
            if score > best:
                best, kept, chosen = score, model.score_samples(test), (parts, kind)
    seconds, scale = time.process_time() - start, np.log(deviation).sum()
    model = GaussianMixture(chosen[0], covariance_type=chosen[1], random_state=0, max_iter=200).fit(np.concatenate([train, valid]))
    return kept - scale, model.score_samples(test) - scale, f"{chosen[0]} {chosen[1]}", seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hollow")
    parser.add_argument("directory")
    parser.add_argument("--only", help="names of tables, with commas between them")
    parser.add_argument("--seed", type=int, default=20261116)
    a = parser.parse_args()
    warnings.filterwarnings("ignore", category=ConvergenceWarning)
    os.makedirs(a.directory, exist_ok=True)
    for k, (make, rows) in enumerate(TABLES.items()):
        name = make.__name__
        if a.only and name not in a.only.split(","):
            continue
        x = make(np.random.default_rng([a.seed, k]), rows + TEST_ROWS)
        path = os.path.join(a.directory, name + ".npz")
        data = {"train": x[: rows - rows // 10], "valid": x[rows - rows // 10 : rows], "test": x[rows:]}
        np.savez(path, **data)
        ours, seconds = by_hollow(a.hollow, path)
        theirs, refitted, chosen, peer_seconds = by_mixture(data)
        gain, second = ours - theirs, ours - refitted
        line = {"table": name, "rows": rows, "columns": x.shape[1], "ours": -ours.mean(), "seconds": seconds, "mixture": -theirs.mean()}
        line |= {"chosen": chosen, "mixture_seconds": peer_seconds, "gain": gain.mean(), "gain_error": gain.std() / len(gain) ** 0.5}
        line |= {"refitted": -refitted.mean(), "gain_refitted": second.mean(), "gain_refitted_error": second.std() / len(second) ** 0.5}
        print(json.dumps({key: round(v, 4) if isinstance(v, float) else v for key, v in line.items()}), flush=True)


if __name__ == "__main__":
    main()
