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


def calvo6() -> Any:
    """Calvo, Montijano and Randez' pair of orders 6(5) for diffrax, which has it not."""
    import diffrax

    last = [17572349 / 289262523, 0, 57513011 / 201864250, 15587306 / 354501571, 71783021 / 234982865,
            29672000 / 180480167, 65567621 / 127060952, -79074570 / 210557597]  # fmt: skip
    low = [15231665 / 510830334, 0, 59452991 / 116050448, -28398517 / 122437738, 56673824 / 137010559,
           68003849 / 426673583, 7097631 / 37564021, -71226429 / 583093742, 1 / 20]  # fmt: skip
    rows = [
        [2 / 15],
        [1 / 20, 3 / 20],
        [3 / 40, 0, 9 / 40],
        [86727015 / 196851553, -60129073 / 52624712, 957436434 / 1378352377, 83886832 / 147842441],
        [-86860849 / 45628967, 111022885 / 25716487, 108046682 / 101167669, -141756746 / 36005461, 73139862 / 60170633],
        [77759591 / 16096467, -49252809 / 6452555, -381680111 / 51572984, 879269579 / 66788831, -90453121 / 33722162,
         111179552 / 157155827],
        [237564263 / 39280295, -100523239 / 10677940, -265574846 / 27330247, 317978411 / 18988713,
         -124494385 / 35453627, 86822444 / 100138635, -12873523 / 724232625],
        last,
    ]  # fmt: skip
    coefficients = diffrax.ButcherTableau(
        a_lower=tuple(np.array(row) for row in rows),
        b_sol=np.array([*last, 0]),
        b_error=np.array([*last, 0]) - np.array(low),
        c=np.array([2 / 15, 1 / 5, 3 / 10, 14 / 25, 19 / 25, 35226607 / 35688279, 1, 1]),
    )

    class Calvo6(diffrax.AbstractERK):
        tableau = coefficients
        interpolation_cls = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k

        def order(self, terms: Any) -> int:
            return 6

    return Calvo6
