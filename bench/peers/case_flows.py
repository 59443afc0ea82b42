"""log p, sampling and a likelihood training step of continuous flows in 2 and 43 dimensions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import ours
from hollownet._library import Context
from measure import Bench, difference
from modelfile import ModelFile
from networks import JaxNet, Layout, TorchNet
from solvers import Solver, calvo6, diffrax_solver, log_normal, torchdiffeq_solver

TOLERANCES = [1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7]
ROWS = {2: 10000, 43: 1000}
QUICK_ROWS = {2: 1024, 43: 128}
TRAIN_ROWS, TRAIN_STEPS = 512, 8


class Problem:
    """A model, rows as its flow sees them, points of the base, and the exact results in double precision."""

    def __init__(self, bench: Bench, path: str, rows: np.ndarray, quick: bool) -> None:
        self.file = ModelFile(path)
        self.layout = Layout(self.file.spec, self.file.parameters)
        self.dim = self.layout.dim
        self._compiled: dict[Any, Callable[[float], Solver]] = {}
        self.flow = ours.Flow(Context(bench.threads), path)
        count = (QUICK_ROWS if quick else ROWS)[self.dim]
        self.x = self.flow.standardised(rows[:count]).astype(np.float32)
        self.z = np.random.default_rng(5).normal(size=self.x.shape).astype(np.float32)
        net = TorchNet(self.layout, "float64")
        self.exact_rows = min(len(self.x), 1000 if self.dim < 10 else 256)
        solve = torchdiffeq_solver(net, "dopri8", 1e-9)
        self.exact_logp = solve.logp(self.x[: self.exact_rows].astype(np.float64))()
        self.exact_x = solve.sample(self.z[: self.exact_rows].astype(np.float64))()

    def by_diffrax(self, method: Any, steps: int = 0) -> Callable[[float], Solver]:
        if (method, steps) not in self._compiled:
            self._compiled[method, steps] = diffrax_solver(JaxNet(self.layout), method(), steps)
        return self._compiled[method, steps]

    def error(self, kind: str, result: np.ndarray) -> tuple[float, float]:
        """Mean and 99 % quantile of the error."""
        exact = self.exact_logp if kind == "logp" else self.exact_x
        wrong = np.abs(np.asarray(result, np.float64)[: self.exact_rows] - exact)
        if wrong.ndim > 1:
            wrong = wrong.max(axis=1)
        return float(wrong.mean()), float(np.quantile(wrong, 0.99))


# ---- cases ----


def run(bench: Bench, options: Any) -> None:
    for name, dim in (("moons", 2), ("miniboone", 43)):
        if not any(bench.wants(case) for case in _cases(dim)):
            continue
        rows = np.load(f"{options.models}/{name}.rows.npy")
        problem = Problem(bench, f"{options.models}/{name}.hollow", rows, options.quick)
        for kind in ("logp", "sample"):
            if bench.wants(f"{kind}/{dim}/tolerance"):
                equal_tolerance(bench, problem, kind)
            if bench.wants(f"{kind}/{dim}/accuracy"):
                equal_accuracy(bench, problem, kind)
        if bench.wants(f"train_flow/{dim}"):
            training_step(bench, problem)


def _cases(dim: int) -> list[str]:
    return [f"{kind}/{dim}/{at}" for kind in ("logp", "sample") for at in ("tolerance", "accuracy")] + [f"train_flow/{dim}"]


def ours_of(problem: Problem, kind: str) -> Callable[[], np.ndarray]:
    return problem.flow.logp(problem.x) if kind == "logp" else problem.flow.sample(problem.z)


def errors(problem: Problem, kind: str, mine: Any, theirs: Any) -> dict[str, float]:
    a, b = problem.error(kind, mine), problem.error(kind, theirs)
    return {"ours_error": a[0], "peer_error": b[0], "ours_error_99": a[1], "peer_error_99": b[1]}


def equal_tolerance(bench: Bench, problem: Problem, kind: str) -> None:
    """dopri5 at 1e-5 on both sides."""
    import diffrax

    problem.flow.solve_by("dopri5", 1e-5)
    mine = ours_of(problem, kind)
    rows = problem.x if kind == "logp" else problem.z
    peers = {
        "diffrax dopri5": problem.by_diffrax(diffrax.Dopri5)(1e-5),
        "torchdiffeq dopri5": torchdiffeq_solver(TorchNet(problem.layout), "dopri5", 1e-5),
    }
    for peer, solver in peers.items():
        if not bench.wants(f"{kind}/{problem.dim}/tolerance", peer):
            continue
        theirs = getattr(solver, kind)(rows)
        a, b = mine(), theirs()
        agree = difference(a, b)
        if not agree < 5e-3:  # torchdiffeq controls the error of all rows together, so single rows may be off
            raise SystemExit(f"{kind}: results of {peer} differ by {agree:.3g}")
        bench.line(f"{kind}/{problem.dim}/tolerance", peer, agree, **bench.pair(mine, theirs),
                   evaluations=problem.flow.evaluations(mine, len(rows)), **errors(problem, kind, a, b))  # fmt: skip


def equal_accuracy(bench: Bench, problem: Problem, kind: str) -> None:
    """Our calibrated solver against the loosest tolerance at which the peer is as accurate in the mean and for 99 % of rows."""
    import diffrax

    problem.flow.solve_as_calibrated()
    solver = problem.flow.solver
    mine = ours_of(problem, kind)
    rows = problem.x if kind == "logp" else problem.z
    a = mine()
    mean, high = problem.error(kind, a)
    torch_net = TorchNet(problem.layout)
    searched: dict[str, Callable[[float], Solver]] = {
        "diffrax dopri5": problem.by_diffrax(diffrax.Dopri5),
        "diffrax tsit5": problem.by_diffrax(diffrax.Tsit5),
        "torchdiffeq dopri5": lambda tolerance: torchdiffeq_solver(torch_net, "dopri5", tolerance),
    }
    name = solver.method.decode()
    same = {"dopri5": diffrax.Dopri5, "tsit5": diffrax.Tsit5, "dopri8": diffrax.Dopri8, "bosh3": diffrax.Bosh3,
            "calvo6": calvo6()}[name]  # fmt: skip
    steps = solver.steps or (0 if solver.divided else solver.even_steps)
    kind_of_steps = f" x {steps}" if steps else f", first 1/{solver.even_steps}" if solver.divided else ""
    own = f"diffrax {name}, our method" + (" and equal steps" if steps else "")
    searched[own] = (lambda count: problem.by_diffrax(same, count)(0.0)) if steps else problem.by_diffrax(same, 0)
    for peer, make in searched.items():
        if not bench.wants(f"{kind}/{problem.dim}/accuracy", peer):
            continue
        best = None
        for setting in range(steps, 6 * steps) if peer == own and steps else TOLERANCES:
            theirs = getattr(make(setting), kind)(rows)
            b = theirs()
            found = problem.error(kind, b)
            if found[0] <= mean * 1.02 and found[1] <= high * 1.02:
                best = (setting, theirs, b)
                break
        case = f"{kind}/{problem.dim}/accuracy"
        if best is None:
            print(json.dumps({"case": case, "peer": peer, "threads": bench.threads, "ours_s": None, "peer_s": None,
                              "ratio": None, "agree": None, "note": "no setting is accurate enough"}), flush=True)  # fmt: skip
            continue
        setting, theirs, b = best
        bench.line(case, peer, difference(a, b), **bench.pair(mine, theirs),
                   **({"steps": setting} if isinstance(setting, int) else {"tolerance": setting}),
                   ours_method=f"{name} {solver.rtol:g}{kind_of_steps}",
                   evaluations=problem.flow.evaluations(mine, len(rows)), **errors(problem, kind, a, b))  # fmt: skip


def training_step(bench: Bench, problem: Problem) -> None:
    """log p by RK4 with 8 steps for 512 rows, and the gradient of its mean to all parameters."""
    import diffrax
    import jax
    import jax.numpy as jnp
    import torch
    from torchdiffeq import odeint

    coefficients = diffrax.ButcherTableau(
        a_lower=(np.array([0.5]), np.array([0, 0.5]), np.array([0, 0, 1.0])),
        b_sol=np.array([1, 2, 2, 1]) / 6,
        b_error=np.zeros(4),
        c=np.array([0.5, 0.5, 1.0]),
    )

    class RK4(diffrax.AbstractERK):
        tableau = coefficients
        interpolation_cls = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k

        def order(self, terms: Any) -> int:
            return 4

    x = problem.x[:TRAIN_ROWS]
    jax_net, torch_net = JaxNet(problem.layout), TorchNet(problem.layout)
    size = sum(v.size for v in problem.layout.parameters.values())
    problem.flow.solve_by("rk4", steps=TRAIN_STEPS)
    run_ours = problem.flow.gradient(x, size)

    def mine() -> list[np.ndarray]:
        logp, gradient = run_ours()
        return [logp, gradient / len(x)]

    def field(p: Any, t: Any, state: Any) -> Any:
        f, d = jax_net.f_d(p, state[0], t)
        return f, d.sum(1)

    def negative(p: Any, rows: Any) -> Any:
        h, p = -1 / TRAIN_STEPS, jax_net.masked(p)

        def step(state: Any, i: Any) -> Any:
            t = 1 + i * h

            def move(k: Any, by: float) -> Any:
                return jax.tree.map(lambda y, v: y + by * h * v, state, k)

            k1 = field(p, t, state)
            k2 = field(p, t + h / 2, move(k1, 0.5))
            k3 = field(p, t + h / 2, move(k2, 0.5))
            k4 = field(p, t + h, move(k3, 1.0))
            return jax.tree.map(lambda y, a, b, c, d: y + h / 6 * (a + 2 * b + 2 * c + d), state, k1, k2, k3, k4), None

        (z, change), _ = jax.lax.scan(step, (rows, jnp.zeros(len(rows))), jnp.arange(TRAIN_STEPS, dtype=jnp.float32))
        logp = log_normal(z) + change
        return -logp.mean(), logp

    jitted = jax.jit(jax.value_and_grad(negative, has_aux=True))
    rows = jnp.asarray(x)

    def by_jax() -> list[np.ndarray]:
        return flat(jax.block_until_ready(jitted(jax_net.parameters, rows)))

    def flat(result: Any) -> list[np.ndarray]:
        (_, logp), gradient = result
        return [logp, np.concatenate([np.ravel(gradient[k]) for k in problem.layout.parameters])]

    def negative_by_diffrax(p: Any, rows: Any) -> Any:
        term = diffrax.ODETerm(lambda t, state, q: field(q, t, state))
        out = diffrax.diffeqsolve(term, RK4(), 1.0, 0.0, -1 / TRAIN_STEPS, (rows, jnp.zeros(len(rows))),
                                  args=jax_net.masked(p), max_steps=TRAIN_STEPS)  # fmt: skip
        logp = log_normal(out.ys[0][-1]) + out.ys[1][-1]
        return -logp.mean(), logp

    by_diffrax = jax.jit(jax.value_and_grad(negative_by_diffrax, has_aux=True))

    trained = {k: v.clone().requires_grad_() for k, v in torch_net.parameters.items()}
    tensor, times = torch.from_numpy(x), torch.tensor([1.0, 0.0])

    def by_torch() -> list[np.ndarray]:
        p = torch_net.masked(trained)

        def right(t: Any, state: Any) -> Any:
            f, d = torch_net.f_d(p, state[0], t)
            return f, d.sum(1)

        z, change = odeint(right, (tensor, torch.zeros(len(x))), times, method="rk4",
                           options={"step_size": 1 / TRAIN_STEPS})  # fmt: skip
        logp = log_normal(z[-1]) + change[-1]
        gradient = torch.autograd.grad(-logp.mean(), list(trained.values()))
        return [logp.detach().numpy(), np.concatenate([g.numpy().ravel() for g in gradient])]

    bench.compare(f"train_flow/{problem.dim}", "jax scan", mine, by_jax, 2e-3)
    bench.compare(f"train_flow/{problem.dim}", "diffrax rk4", mine,
                  lambda: flat(jax.block_until_ready(by_diffrax(jax_net.parameters, rows))), 2e-3)  # fmt: skip
    # torchdiffeq's rk4 is the 3/8 rule, another method of order 4.
    bench.compare(f"train_flow/{problem.dim}", "torchdiffeq rk4", mine, by_torch, 2e-2)
