"""An iteration of Fokker-Planck matching: the residual of a stochastic equation with networks f and g, and its gradients.

    R = dlog p/dt + sum_i D f_i + f_i s_i - 1/2 (D^2 g_i^2 + 2 D g_i^2 s_i + g_i^2 (q_i + s_i^2))

with s = grad log p and q the diagonal of its Hessian; the loss is the mean of R^2 over the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import ours
from case_nets import _spec
from hollownet._library import Context
from measure import Bench
from networks import JaxNet, Layout

SIZES = {"2": (2, 16, 64, 64, 512), "10": (10, 16, 128, 64, 512)}


def run(bench: Bench, options: Any) -> None:
    for name, sizes in SIZES.items():
        dim, features, hidden, width, rows = sizes
        context = Context(bench.threads)
        nets = [ours.network(context, dim=dim, features=features, hidden=hidden, width=width) for _ in range(2)]
        values = [ours.net_parameters(net) for net in nets]
        values[1] = {k: np.roll(v, 1) if k.startswith("transformer") else v for k, v in values[1].items()}
        rng = np.random.default_rng(11)
        inputs = [rng.normal(size=s).astype(np.float32) for s in ((rows, dim), (rows, dim), (rows, dim), (rows,))]
        mine = our_step(context, nets, dim, rows).bind(rows, inputs, [*values[0].values(), *values[1].values()])
        bench.compare(f"sde/{name}", "jax jit", mine, jax_step(sizes, values, inputs), 1e-3)


def our_step(context: Context, nets: list[Any], dim: int, rows: int) -> ours.Plan:
    g = ours.Graph(context)
    x, s, q, r = g.input("x", dim), g.input("s", dim), g.input("q", dim), g.input("r")
    f, df, _ = g.net(nets[0], x, 1)
    b, db, _ = g.net(nets[1], x, 2)
    a = g.mul(b, b)
    da = g.scale(2, g.mul(b, db[0]))
    dda = g.scale(2, g.add(g.mul(db[0], db[0]), g.mul(b, db[1])))
    drift = g.add(df[0], g.mul(f, s))
    spread = g.add(g.add(dda, g.scale(2, g.mul(da, s))), g.mul(a, g.add(q, g.mul(s, s))))
    residual = g.add(r, g.sum(g.sub(drift, g.scale(0.5, spread)), 0))
    loss = g.sum_rows(g.scale(1 / rows, g.mul(residual, residual)))
    return g.plan([loss, *g.vjp(loss, g.params)])


def jax_step(sizes: Any, values: Any, inputs: Any) -> Any:
    import jax
    import jax.numpy as jnp

    drift_net, diffusion_net = (JaxNet(Layout(_spec(sizes), v)) for v in values)
    x, s, q, r = (jnp.asarray(v) for v in inputs)

    def loss(p: Any, x: Any, s: Any, q: Any, r: Any) -> Any:
        f, df = drift_net.f_d(drift_net.masked(p[0]), x)
        b, db, ddb = diffusion_net.derivatives(diffusion_net.masked(p[1]), x)
        a, da, dda = b * b, 2 * b * db, 2 * (db * db + b * ddb)
        residual = r + (df + f * s - 0.5 * (dda + 2 * da * s + a * (q + s * s))).sum(1)
        return (residual**2).mean()

    step = jax.jit(jax.value_and_grad(loss))
    params = (drift_net.parameters, diffusion_net.parameters)

    def theirs() -> list[Any]:
        value, gradients = jax.block_until_ready(step(params, x, s, q, r))
        return [value, *(gradients[i][k] for i in (0, 1) for k in params[i])]

    return theirs
