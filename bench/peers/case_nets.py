"""f, f + D and the training step of one network, sizes a to d of `hollow bench ddim`."""

from __future__ import annotations

from typing import Any

import numpy as np
import ours
from hollownet._library import Context
from measure import Bench
from networks import JaxNet, Layout, TorchNet

SIZES = {  # dim, features, hidden, width, rows
    "a": (2, 16, 64, 64, 512),
    "b": (43, 32, 256, 64, 1000),
    "c": (64, 100, 512, 100, 100),
    "d": (784, 16, 1024, 32, 64),
}
LIMIT = 2e-4  # float32: sums of up to 1,024 products


def _spec(sizes: tuple[int, int, int, int, int]) -> dict[str, Any]:
    dim, features, _, _, _ = sizes
    return dict(dim=dim, features=features, time=False, hidden_layers=2, layers=2, activation="tanh",
                conditioner="made", transformer="shared", plus=[], reflections=0)  # fmt: skip


def run(bench: Bench, options: Any) -> None:
    for name, sizes in SIZES.items():
        if not any(bench.wants(f"{job}/{name}") for job in ("f", "f_d", "train")):
            continue
        dim, features, hidden, width, rows = sizes
        context = Context(bench.threads)
        net = ours.network(context, dim=dim, features=features, hidden=hidden, width=width)
        values = ours.net_parameters(net)
        x = np.random.default_rng(7).normal(size=(rows, dim)).astype(np.float32)
        g = ours.Graph(context)
        node = g.input("x", dim)
        f, d, divergence = g.net(net, node)
        loss = g.sum_rows(g.scale(1 / rows, g.add(g.scale(0.5, g.sum(g.mul(f, f), 0)), divergence)))
        jobs = {
            "f": g.plan([f]).bind(rows, [x], list(values.values())),
            "f_d": g.plan([f, d[0]]).bind(rows, [x], list(values.values())),
            "train": g.plan([loss, *g.vjp(loss, g.params)]).bind(rows, [x], list(values.values())),
        }
        layout = Layout(_spec(sizes), values)
        compiled = not options.quick and bench.threads == 1  # torch.compile takes ten seconds a function
        for peer, calls in (*_jax(layout, x), *_torch(layout, x, compiled)):
            for job, theirs in calls.items():
                bench.compare(f"{job}/{name}", peer, jobs[job], theirs, LIMIT)


def _jax(layout: Layout, x: np.ndarray) -> Any:
    net = JaxNet(layout)
    p, rows = net.parameters, net.jnp.asarray(x)
    f, f_d, step = (net.jax.jit(h) for h in (net.f, net.f_d, net.jax.value_and_grad(net.loss)))
    ready = net.jax.block_until_ready

    def train() -> list[Any]:
        value, gradients = ready(step(p, rows))
        return [value, *(gradients[k] for k in p)]

    yield "jax jit", {"f": lambda: [ready(f(p, rows))], "f_d": lambda: ready(f_d(p, rows)), "train": train}


def _torch(layout: Layout, x: np.ndarray, compiled: bool) -> Any:
    net = TorchNet(layout)
    torch = net.torch
    rows = torch.from_numpy(x)
    p = net.parameters
    trained = {k: v.clone().requires_grad_() for k, v in p.items()}
    for peer, wrap in (("torch", lambda h: h), ("torch.compile", torch.compile)):
        if not compiled and peer == "torch.compile":
            continue
        f, f_d, loss = wrap(net.f), wrap(net.f_d), wrap(net.loss)

        def plain(h: Any) -> Any:
            def call() -> Any:
                with torch.inference_mode():
                    out = h(p, rows)
                return list(out) if isinstance(out, tuple) else [out]

            return call

        def train(loss: Any = loss) -> list[Any]:
            value = loss(trained, rows)
            return [value.detach(), *torch.autograd.grad(value, list(trained.values()))]

        yield peer, {"f": plain(f), "f_d": plain(f_d), "train": train}
