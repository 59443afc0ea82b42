"""Hollow networks in JAX programs: f, D^k f and the divergence with exact gradients, under jit, grad and vmap over rows.

>>> import jax, hollownet, hollownet.jax
>>> net = hollownet.Net(dim=3)
>>> apply = hollownet.jax.operator(net)
>>> parameters = hollownet.jax.parameters(net)
>>> f, d, divergence = jax.jit(apply)(parameters, jax.numpy.ones((8, 3)))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._net import Net


def parameters(net: Net) -> dict[str, Any]:
    """The parameters by name, as arrays of JAX."""
    return {name: jnp.asarray(value) for name, value in net.parameters.items()}


def operator(net: Net, order: int = 1) -> Callable[..., Any]:
    """A function apply(parameters, x, t=None, context=None) that returns (f, d, divergence); f alone if `order` is 0.

    x is rows x dim, or one row, as under vmap. The network must be float32 unless JAX has 64 bits enabled. Second derivatives are
    not supported: D^k and the divergence are outputs, not derivatives that JAX would have to take.
    """
    dtype = net.dtype
    if dtype == np.float64 and not jax.config.read("jax_enable_x64"):
        raise ValueError("the network is float64; enable it in JAX with jax.config.update('jax_enable_x64', True)")
    names, dim, width = list(net.parameters), net.dim, net.context

    def shapes(rows: int) -> Any:
        f = jax.ShapeDtypeStruct((rows, dim), dtype)
        if order == 0:
            return (f,)
        return f, jax.ShapeDtypeStruct((order, rows, dim), dtype), jax.ShapeDtypeStruct((rows,), dtype)

    def host_rows(values: Any, x: Any, t: Any, context: Any) -> Any:
        with net._locked():
            net.set_parameters({name: np.asarray(values[name]) for name in names})
            result = net.eval(x, t, context, order=order)
        return tuple(result)[: 1 if order == 0 else 3]

    def host_eval(values: Any, x: Any, t: Any, context: Any) -> Any:
        x, t, context = np.asarray(x), _host(t), _host(context)
        if x.ndim == 2:
            return host_rows(values, x, t, context)
        # Under vmap: an axis in front of every argument, of length 1 where it is not mapped. Rows with the same parameters go together.
        count = max(len(v) for v in (x, t, context, *values.values()) if v is not None)
        x, t, context = (None if v is None else np.broadcast_to(v, (count, *v.shape[1:])) for v in (x, t, context))
        rows = x.shape[1]
        if all(len(v) == 1 for v in values.values()):
            flat = (None if v is None else v.reshape(count * rows, *v.shape[2:]) for v in (x, t, context))
            result = host_rows({name: values[name][0] for name in names}, *flat)
            f = result[0].reshape(count, rows, dim)
            if order == 0:
                return (f,)
            d = np.ascontiguousarray(result[1].reshape(order, count, rows, dim).swapaxes(0, 1))
            return f, d, result[2].reshape(count, rows)
        each = [
            host_rows(
                {name: v[i % len(v)] for name, v in values.items()},
                *(None if v is None else v[i] for v in (x, t, context)),
            )
            for i in range(count)
        ]
        return tuple(np.stack(parts) for parts in zip(*each))

    def host_vjp(values: Any, x: Any, t: Any, context: Any, cotangents: Any) -> Any:
        gf, gd, gdiv = (None if c is None else np.asarray(c) for c in (*cotangents, None, None)[:3])
        with net._locked():
            net.set_parameters({name: np.asarray(values[name]) for name in names})
            g = net.vjp(np.asarray(x), _host(t), _host(context), gf=gf, gd=gd, gdivergence=gdiv)
        return g.parameters, g.x, g.t, g.context

    @jax.custom_vjp
    def batch(values: Any, x: Any, t: Any, context: Any) -> Any:
        return jax.pure_callback(host_eval, shapes(x.shape[0]), values, x, t, context, vmap_method="expand_dims")

    def forward(values: Any, x: Any, t: Any, context: Any) -> Any:
        return batch(values, x, t, context), (values, x, t, context)

    def backward(saved: Any, cotangents: Any) -> Any:
        like = jax.tree_util.tree_map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), saved)
        return jax.pure_callback(host_vjp, like, *saved, cotangents, vmap_method="sequential")

    batch.defvjp(forward, backward)

    def apply(values: Any, x: Any, t: Any = None, context: Any = None) -> Any:
        values = {name: jnp.asarray(values[name], dtype) for name in names}
        x = jnp.asarray(x, dtype)
        single = x.ndim == 1
        rows = x[None] if single else x
        if rows.ndim != 2 or rows.shape[1] != dim:
            raise ValueError(f"x has shape {x.shape}, but (rows, {dim}) is expected")
        if (t is not None) != net.time or (context is not None) != (width > 0):
            raise ValueError("t and context are for networks that have them, and these need them")
        if t is not None:
            t = jnp.broadcast_to(jnp.asarray(t, dtype), rows.shape[:1])
        if context is not None:
            context = jnp.broadcast_to(jnp.asarray(context, dtype), (rows.shape[0], width))
        result = batch(values, rows, t, context)
        if single:
            result = tuple(part[:, 0] if i == 1 else part[0] for i, part in enumerate(result))
        return result[0] if order == 0 else result

    return apply


def _host(value: Any) -> Any:
    return None if value is None else np.asarray(value)
