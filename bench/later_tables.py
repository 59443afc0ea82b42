#!/usr/bin/env python3
"""Nine more tables that chose nothing in the recipe of `hollow fit`, for bench/peers/density.py.

    bench/later_tables.py DIRECTORY

Writes DIRECTORY/NAME.npz with the arrays train, valid (a tenth of the rows, at least 30) and test (2,000 rows). Whole numbers and amounts of money have
uniform noise of one step's width in the file itself. Needs numpy.
"""
import numpy as np
from table_files import write


def few8(r, n):
    """t distributions, two columns warped."""
    mix = r.normal(size=(8, 8)) / 2.5
    x = r.standard_t(7, (n, 8)) @ mix
    x[:, 2] = np.exp(0.6 * x[:, 2])
    x[:, 5] = x[:, 5] ** 2 / 2 + 0.3 * x[:, 0] + 0.2 * r.normal(size=n)
    return x


def few12(r, n):
    """Two groups with four factors each."""
    first = r.random(n) < 0.35
    loadings = r.normal(size=(2, 12, 4))
    f = r.normal(size=(n, 4))
    x = np.where(first[:, None], f @ loadings[0].T + 2 * r.normal(size=12), f @ loadings[1].T)
    return x + 0.5 * r.normal(size=(n, 12)) * r.uniform(0.5, 2, 12)


def money4(r, n):
    """Quantity, price, age, total."""
    quantity = 1 + r.geometric(0.3, n)
    price = np.round(np.exp(r.normal(2.2, 0.7, n)), 2)
    age = r.integers(18, 80, n)
    total = np.round(quantity * price * (1 - 0.1 * (quantity > 4)) + r.choice([0, 3.5], n), 2)
    x = np.c_[quantity, price, age, total].astype(float)
    return x + (r.random(x.shape) - 0.5) * np.array([1, 0.01, 1, 0.01])


def heavy5(r, n):
    """Heavy tails with a common scale."""
    s = np.exp(0.7 * r.normal(size=n))
    a, b, c = s * r.standard_t(3, n), s * r.standard_t(4, n) + 1, np.log(s) + 0.4 * r.normal(size=n)
    return np.c_[a, b, c, r.pareto(2.5, n) * s, r.normal(size=n) * s**0.5]


def spiralring2(r, n):
    """A spiral inside a ring."""
    ring = r.random(n) < 0.3
    u, w = np.sqrt(r.random(n)) * 2.5 * np.pi, r.random(n) * 2 * np.pi
    x = np.where(ring[:, None], np.c_[11 * np.cos(w), 11 * np.sin(w)], np.c_[u * np.cos(u), u * np.sin(u)])
    return x + 0.35 * r.normal(size=(n, 2))


def mix15(r, n):
    """Six correlated normal parts."""
    parts = 6
    mean, factor = 2 * r.normal(size=(parts, 15)), r.normal(size=(parts, 15, 15)) / 3
    k = r.choice(parts, n, p=r.dirichlet(np.ones(parts) * 3))
    return mean[k] + np.einsum("nij,nj->ni", factor[k], r.normal(size=(n, 15))) + 0.3 * r.normal(size=(n, 15))


def clusters3(r, n):
    """25 normal clusters of all directions."""
    parts = 25
    mean, k = 6 * r.normal(size=(parts, 3)), r.integers(0, parts, n)
    scale = np.exp(r.normal(-1, 0.8, (parts, 3)))
    turn = np.array([np.linalg.qr(r.normal(size=(3, 3)))[0] for _ in range(parts)])
    return mean[k] + np.einsum("nij,nj->ni", turn[k] * scale[k][:, None, :], r.normal(size=(n, 3)))


def curved4(r, n):
    """A smooth chain."""
    z = r.normal(size=(n, 4))
    b, d = z[:, 1] * 0.4 + np.sin(2 * z[:, 0]), 0.3 * z[:, 3] + z[:, 0] * z[:, 1] / 2
    return np.c_[z[:, 0], b, z[:, 2] * np.exp(0.5 * z[:, 1]), d]


def one1(r, n):
    """One column: a gamma distribution and two normal ones."""
    k = r.choice(3, n, p=[0.5, 0.3, 0.2])
    x = np.where(k == 0, r.gamma(2, 1, n), np.where(k == 1, r.normal(7, 0.3, n), r.normal(10, 2, n)))
    return x[:, None]


TABLES = {few8: 300, few12: 450, money4: 2500, heavy5: 2000, spiralring2: 2600, mix15: 3000, clusters3: 3500, curved4: 2400, one1: 1000}


if __name__ == "__main__":
    write(TABLES, seed=20261117, test_rows=2000)
