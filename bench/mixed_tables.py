#!/usr/bin/env python3
"""Five tables with columns of different kinds that chose nothing in the recipe of `hollow fit`, for bench/peers/density.py.

    bench/mixed_tables.py DIRECTORY

Writes DIRECTORY/NAME.npz with the arrays train, valid (a tenth of the rows, at least 30) and test (4,000 rows). Counts and amounts of money have
uniform noise of one step's width in the file itself. Needs numpy.
"""
import numpy as np
from table_files import write


def spread(r, x, steps):
    """Noise of one step's width on columns that have steps."""
    return x + (r.random(x.shape) - 0.5) * np.array(steps)


def claims6(r, n):
    """Age, years insured, claims, amount, reserve, days to settle."""
    age = r.integers(18, 91, n)
    years = np.minimum(r.geometric(0.12, n), age - 17)
    risk = np.exp(0.5 * r.normal(size=n) - 0.01 * (age - 45))
    claims = 1 + r.poisson(0.4 * risk * np.sqrt(years))
    amount = np.round(np.exp(5.5 + 0.8 * r.normal(size=n) + 0.7 * np.log(claims)), 2)
    reserve = np.round(amount * np.exp(0.25 * r.normal(size=n)) + 50 * (claims > 2), 2)
    days = r.gamma(2 + (amount > 800), 12 + 3 * claims)
    return spread(r, np.c_[age, years, claims, amount, reserve, days].astype(float), [1, 1, 1, 0.01, 0.01, 0])


def sensors9(r, n):
    """Time, temperature, and seven sensors that drift, saturate and share noise."""
    t = r.random(n)
    temperature = 12 + 9 * np.sin(2 * np.pi * t * 3) + 4 * t + 1.5 * r.normal(size=n)
    gas = np.exp(0.9 * r.normal(size=n) + 0.03 * temperature)
    common = r.normal(size=n)
    columns = [t, temperature]
    for k in range(7):
        drift = (0.5 - 0.25 * k) * t + 0.3 * t**2
        level = np.log1p((0.3 + 0.2 * k) * gas) + drift + 0.02 * (k - 3) * temperature
        noise = (0.06 + 0.01 * k) * (common + r.normal(size=n))
        columns.append(2.5 * np.tanh(level / 2.5) + noise)
    return np.stack(columns, 1)


def angles4(r, n):
    """Two angles in degrees, cut at the circle's ends, a length and an energy."""
    k = r.choice(4, n, p=[0.42, 0.3, 0.18, 0.1])
    phi = np.array([-63, -115, -75, 58])[k] + np.array([11, 22, 16, 10])[k] * r.normal(size=n)
    psi = np.array([-42, 135, 150, 45])[k] + np.array([12, 20, 14, 14])[k] * r.normal(size=n) - 0.6 * (phi + 63) * (k == 0)
    phi, psi = (phi + 180) % 360 - 180, (psi + 180) % 360 - 180
    length = 1.53 + 0.02 * r.normal(size=n) + 0.01 * np.cos(np.radians(psi))
    energy = 2 * (1 - np.cos(np.radians(phi + 60))) + (1 - np.cos(np.radians(2 * psi))) + r.gamma(1.5, 0.4, n)
    return np.c_[phi, psi, length, energy]


def nested8(r, n):
    """Four groups of four to seven clusters each, of widths that differ tenfold."""
    groups = [(r.normal(size=8) * 6, [(r.normal(size=8) * 1.5, np.exp(r.normal(size=8) * 0.5 - 1.2), r.normal(size=(8, 2)) * 0.4) for _ in range(4 + g)]) for g in range(4)]
    x = np.empty((n, 8))
    for i in range(n):
        centre, clusters = groups[r.choice(4, p=[0.4, 0.3, 0.2, 0.1])]
        offset, widths, loadings = clusters[min(r.geometric(0.3) - 1, len(clusters) - 1)]
        x[i] = centre + offset + widths * r.normal(size=8) + loadings @ r.normal(size=2)
    return x


def labs15(r, n):
    """Fifteen laboratory values of two kinds of patients, most of them skewed."""
    ill = r.random(n) < 0.25
    factors = r.normal(size=(n, 3)) + np.where(ill[:, None], [1.2, -0.8, 0.5], 0)
    x = 0.7 * factors @ r.normal(size=(3, 15)) + r.normal(size=(n, 15)) * r.uniform(0.4, 1, 15)
    x[:, :9] = np.exp(r.uniform(0.3, 0.8, 9) * x[:, :9] + r.uniform(0, 3, 9))
    x[:, 12] = 5 + 0.5 * x[:, 12] ** 2 + 0.3 * r.normal(size=n)
    return x


TABLES = {claims6: 1500, sensors9: 6000, angles4: 3000, nested8: 8000, labs15: 400}


if __name__ == "__main__":
    write(TABLES, seed=20261118, test_rows=4000)
