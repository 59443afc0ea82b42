"""first_result.py torch|jax MODEL ROWS: load a density model, print log p of the rows; what a short script would do."""

from __future__ import annotations

import math
import os
import sys

import numpy as np
from modelfile import ModelFile
from networks import Layout


def main() -> None:
    which, path, rows = sys.argv[1:]
    file = ModelFile(path)
    layout = Layout(file.spec, file.parameters)
    mean = np.array([c["mean"] for c in file.columns])
    deviation = np.array([c["deviation"] for c in file.columns])
    x = ((np.loadtxt(rows, delimiter=",", skiprows=1) - mean) / deviation).astype(np.float32)
    if which == "torch":
        import torch
        from solvers import torchdiffeq_solver
        from networks import TorchNet

        torch.set_num_threads(1)
        logp = torchdiffeq_solver(TorchNet(layout), "dopri5", 1e-5).logp(x)()
    else:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import diffrax
        from solvers import diffrax_solver
        from networks import JaxNet

        logp = diffrax_solver(JaxNet(layout), diffrax.Dopri5())(1e-5).logp(x)()
    for value in logp:
        print(float(value) - math.fsum(np.log(deviation)))


if __name__ == "__main__":
    main()
