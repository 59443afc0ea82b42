"""log p and samples of a continuous flow by torchdiffeq and by diffrax, as their documentation solves such equations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from networks import JaxNet, TorchNet

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Solver:
    """A peer's log p and samples: functions of rows that return functions without arguments."""

    def __init__(self, logp: Callable[..., Any], sample: Callable[..., Any]) -> None:
        self.logp, self.sample = logp, sample


def log_normal(z: Any) -> Any:
    return -0.5 * (z * z).sum(-1) - HALF_LOG_2PI * z.shape[-1]


def torchdiffeq_solver(net: TorchNet, method: str, tolerance: float) -> Solver:
    import torch
    from torchdiffeq import odeint

    p = net.parameters

    def both(t: Any, state: Any) -> Any:
        f, d = net.f_d(p, state[0], t)
        return f, d.sum(1)

    def logp(x: np.ndarray) -> Callable[[], np.ndarray]:
        rows, times = torch.from_numpy(x), torch.tensor([1.0, 0.0], dtype=torch.from_numpy(x).dtype)

        def run() -> np.ndarray:
            with torch.inference_mode():
                z, change = odeint(both, (rows, torch.zeros(len(x), dtype=rows.dtype)), times, rtol=tolerance,
                                   atol=tolerance, method=method)  # fmt: skip
                return (log_normal(z[-1]) + change[-1]).numpy()

        return run

    def sample(z: np.ndarray) -> Callable[[], np.ndarray]:
        rows, times = torch.from_numpy(z), torch.tensor([0.0, 1.0], dtype=torch.from_numpy(z).dtype)

        def run() -> np.ndarray:
            with torch.inference_mode():
                return odeint(lambda t, y: net.f(p, y, t), rows, times, rtol=tolerance, atol=tolerance, method=method)[
                    -1
                ].numpy()

        return run

    return Solver(logp, sample)


def diffrax_solver(net: JaxNet, method: Any, steps: int = 0) -> Callable[[float], Solver]:
    """Of the tolerance, which is an argument of the compiled function; `steps` nonzero: so many equal steps instead."""
    import diffrax
    import jax
    import jax.numpy as jnp

    def both(t: Any, state: Any, p: Any) -> Any:
        f, d = net.f_d(p, state[0], t)
        return f, d.sum(1)

    def solve(field: Any, p: Any, tolerance: Any, state: Any, t0: float, t1: float) -> Any:
        controller = diffrax.PIDController(rtol=tolerance, atol=tolerance)
        first = None
        if steps:
            controller, first = diffrax.ConstantStepSize(), (t1 - t0) / steps
        out = diffrax.diffeqsolve(diffrax.ODETerm(field), method, t0, t1, first, state, args=p,
                                  stepsize_controller=controller, max_steps=None,
                                  adjoint=diffrax.ForwardMode())  # fmt: skip
        return jax.tree.map(lambda a: a[-1], out.ys)

    @jax.jit
    def density(p: Any, tolerance: Any, x: Any) -> Any:
        z, change = solve(both, p, tolerance, (x, jnp.zeros(len(x), x.dtype)), 1.0, 0.0)
        return log_normal(z) + change

    @jax.jit
    def draw(p: Any, tolerance: Any, z: Any) -> Any:
        return solve(lambda t, y, q: net.f(q, y, t), p, tolerance, z, 0.0, 1.0)

    def bind(function: Any, tolerance: float) -> Callable[..., Any]:
        def with_rows(x: np.ndarray) -> Callable[[], Any]:
            rows = jnp.asarray(x)
            return lambda: np.asarray(function(net.parameters, tolerance, rows))

        return with_rows

    return lambda tolerance: Solver(bind(density, tolerance), bind(draw, tolerance))
