"""What bench/later_tables.py and bench/mixed_tables.py share: tables made by functions, as files for bench/peers/density.py."""
import sys
from pathlib import Path

import numpy as np


def write(tables, seed, test_rows):
    """Write DIRECTORY/NAME.npz, DIRECTORY being the program's argument, for each function f(r, rows) in `tables` {f: rows}."""
    directory = Path(sys.argv[1])
    for k, (make, rows) in enumerate(tables.items()):
        x = make(np.random.default_rng([seed, k + 1]), rows + test_rows)
        first = rows - max(rows // 10, 30)
        np.savez(directory / f"{make.__name__}.npz", train=x[:first], valid=x[first:rows], test=x[rows:])
