#!/usr/bin/env python3
"""How well a classifier tells samples of a density model from test rows: the area under its ROC curve, 0.5 being not at all.

    bench/two_sample.py build/hollow TABLE.npz [--model FILE] [--rows 4000] [--seed 0] [-- OPTIONS OF hollow fit]

TABLE.npz has the arrays train, valid and test. A model is fitted with the default recipe unless one is given. As many samples, rounded to the
columns' grids by `hollow sample`, and test rows are told apart by gradient boosted trees (scikit-learn's HistGradientBoostingClassifier), in three
folds. The same with training rows instead of samples says what is reached by chance. Needs numpy and scikit-learn. Prints one line of JSON.
"""
import argparse
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold


def auc(a, b, seed):
    """Mean over three folds of the area under the ROC curve of a classifier between the rows of a and of b."""
    x = np.concatenate([a, b])
    y = np.concatenate([np.zeros(len(a)), np.ones(len(b))])
    scores = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=seed).split(x, y):
        model = HistGradientBoostingClassifier(random_state=seed).fit(x[train], y[train])
        scores.append(roc_auc_score(y[test], model.predict_proba(x[test])[:, 1]))
    return float(np.mean(scores))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hollow")
    parser.add_argument("table")
    parser.add_argument("--model")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("options", nargs="*", help="of hollow fit, after --")
    a = parser.parse_args()
    data = np.load(a.table)
    with tempfile.TemporaryDirectory() as directory:
        model = a.model or os.path.join(directory, "m.hollow")
        if not a.model:
            fit = [a.hollow, "fit", a.table + ":train", "--valid", a.table + ":valid", "-o", model, "--quiet", *a.options]
            subprocess.run(fit, check=True)
        rows = min(a.rows, len(data["test"]), len(data["train"]))
        out = subprocess.run([a.hollow, "sample", model, "-n", str(rows), "--seed", str(a.seed)], check=True, capture_output=True)
        drawn = np.loadtxt(io.BytesIO(out.stdout), delimiter=",", skiprows=1, ndmin=2)
    pick = np.random.default_rng(a.seed)
    test = data["test"][pick.permutation(len(data["test"]))[:rows]]
    train = data["train"][pick.permutation(len(data["train"]))[:rows]]
    result = {"table": os.path.basename(a.table), "rows": rows, "auc": auc(drawn, test, a.seed), "auc_train": auc(train, test, a.seed)}
    json.dump(result, sys.stdout)
    print()


if __name__ == "__main__":
    main()
