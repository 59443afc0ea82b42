"""The hollow network of a model file, as one would write it in PyTorch and in JAX.

f_i = tau(x_i, h_i, t): h from two masked networks ("made") or from a network for each dimension ("separate"), tau a small network
shared by all dimensions. Masked weights are zero in the
file, so evaluations need no mask; in training the weights are multiplied by it, as usual. D holds h and differentiates tau
alone: by jax.jvp in JAX; in PyTorch by the tangent written out layer by layer, which is faster there than torch.func.jvp and than
detach() with autograd.grad, and which torch.compile takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Layout:
    """What both versions need to know about a network, and its parameters in the order in which they use them."""

    def __init__(self, spec: dict[str, Any], parameters: dict[str, np.ndarray]) -> None:
        known = spec["conditioner"] in ("made", "separate") and spec["transformer"] == "shared"
        if not known or spec["plus"] or spec["reflections"]:
            raise ValueError("only networks of one term, made or separate, and shared are written for the peers")
        self.separate = spec["conditioner"] == "separate"
        self.dim, self.features, self.time = spec["dim"], spec["features"], bool(spec["time"])
        self.hidden_layers = max(spec["hidden_layers"], 0)
        self.layers = max(spec["layers"], 0)
        self.activation = spec["activation"]
        # The conditioner takes the columns in this order; None: as they are.
        self.order = np.array(spec["order"]) if spec.get("order") else None
        self.inverse = None if self.order is None else np.argsort(self.order)
        self.parameters = parameters
        self.masks = {
            name: (value != 0).astype(np.float32)
            for name, value in parameters.items()
            if name.startswith("conditioner.") and name.endswith(".weight")
        }

    def enter(self, x: Any) -> Any:
        return x if self.order is None else x[:, self.order]

    def leave(self, f: Any) -> Any:
        return f if self.inverse is None else f[:, self.inverse]


def _conditioner(layout: Layout, p: dict[str, Any], x: Any, t: Any, activation: Any, concat: Any) -> Any:
    if layout.separate:
        return _separate(layout, p, x, t, activation)
    parts = []
    for side in ("forward", "backward"):
        y = x
        for layer in range(layout.hidden_layers + 1):
            name = f"conditioner.{side}.{layer}"
            y = y @ p[name + ".weight"].T + p[name + ".bias"]
            if layer == 0 and layout.time:
                y = y + t * p[name + ".weight_t"]
            if layer < layout.hidden_layers:
                y = activation(y)
        parts.append(y.reshape(-1, layout.dim, layout.features // 2))
    return concat(parts)


def _separate(layout: Layout, p: dict[str, Any], x: Any, t: Any, activation: Any) -> Any:
    weight = p["conditioner.0.before.weight"] + p["conditioner.0.after.weight"]
    y = (x @ weight.T).reshape(-1, layout.dim, weight.shape[0] // layout.dim)
    y = y + p["conditioner.0.place"] + p["conditioner.0.bias"]
    if layout.time:
        y = y + t * p["conditioner.0.weight_t"]
    for layer in range(1, layout.hidden_layers + 1):
        y = activation(y).swapaxes(0, 1) @ p[f"conditioner.{layer}.weight"].swapaxes(1, 2)  # a product for each column
        y = y.swapaxes(0, 1) + p[f"conditioner.{layer}.bias"]
    return y


def _transformer(layout: Layout, p: dict[str, Any], x: Any, h: Any, t: Any, activation: Any) -> Any:
    y = h @ p["transformer.0.weight_h"].T + p["transformer.0.bias"] + x[..., None] * p["transformer.0.weight_x"]
    if layout.time:
        y = y + t * p["transformer.0.weight_t"]
    for layer in range(1, layout.layers + 1):
        y = activation(y) @ p[f"transformer.{layer}.weight"].T + p[f"transformer.{layer}.bias"]
    return y[..., 0]


# ---- PyTorch ----


class TorchNet:
    """Functions of the parameters `p` (a dict of tensors), the rows x and the time t (one number)."""

    def __init__(self, layout: Layout, dtype: str = "float32") -> None:
        import torch

        self.torch, self.layout = torch, layout
        self.activation = {"tanh": torch.tanh, "swish": torch.nn.functional.silu}[layout.activation]
        kind = getattr(torch, dtype)
        self.parameters = {k: torch.tensor(v, dtype=kind) for k, v in layout.parameters.items()}
        self.masks = {k: torch.tensor(v, dtype=kind) for k, v in layout.masks.items()}

    def masked(self, p: Any) -> Any:
        return {k: v * self.masks[k] if k in self.masks else v for k, v in p.items()}

    def _h(self, p: Any, x: Any, t: Any) -> Any:
        return _conditioner(self.layout, p, x, t, self.activation, lambda parts: self.torch.cat(parts, 2))

    def f(self, p: Any, x: Any, t: Any = 0.0) -> Any:
        x = self.layout.enter(x)
        return self.layout.leave(_transformer(self.layout, p, x, self._h(p, x, t), t, self.activation))

    def f_d(self, p: Any, x: Any, t: Any = 0.0) -> Any:
        layout, x = self.layout, self.layout.enter(x)
        h = self._h(p, x, t)
        y = h @ p["transformer.0.weight_h"].T + p["transformer.0.bias"] + x[..., None] * p["transformer.0.weight_x"]
        if layout.time:
            y = y + t * p["transformer.0.weight_t"]
        d = p["transformer.0.weight_x"]
        for layer in range(1, layout.layers + 1):
            y, slope = self.activate(y)
            weight = p[f"transformer.{layer}.weight"].T
            y, d = y @ weight + p[f"transformer.{layer}.bias"], (slope * d) @ weight
        return layout.leave(y[..., 0]), layout.leave(d[..., 0])

    def activate(self, z: Any) -> Any:
        """The activation and its slope."""
        if self.layout.activation == "tanh":
            y = self.torch.tanh(z)
            return y, 1 - y * y
        s = self.torch.sigmoid(z)
        y = z * s
        return y, s + y * (1 - s)

    def loss(self, p: Any, x: Any) -> Any:
        f, d = self.f_d(self.masked(p), x)
        return ((f * f).sum(1) / 2 + d.sum(1)).mean()


# ---- JAX ----


class JaxNet:
    def __init__(self, layout: Layout, dtype: str = "float32") -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp, self.layout = jax, jnp, layout
        self.activation = {"tanh": jnp.tanh, "swish": jax.nn.silu}[layout.activation]
        self.parameters = {k: jnp.asarray(v, dtype=dtype) for k, v in layout.parameters.items()}
        self.masks = {k: jnp.asarray(v, dtype=dtype) for k, v in layout.masks.items()}

    def masked(self, p: Any) -> Any:
        return {k: v * self.masks[k] if k in self.masks else v for k, v in p.items()}

    def _h(self, p: Any, x: Any, t: Any) -> Any:
        return _conditioner(self.layout, p, x, t, self.activation, lambda parts: self.jnp.concatenate(parts, 2))

    def f(self, p: Any, x: Any, t: Any = 0.0) -> Any:
        x = self.layout.enter(x)
        return self.layout.leave(_transformer(self.layout, p, x, self._h(p, x, t), t, self.activation))

    def f_d(self, p: Any, x: Any, t: Any = 0.0) -> Any:
        x = self.layout.enter(x)
        h = self._h(p, x, t)
        f, d = self.jax.jvp(
            lambda value: _transformer(self.layout, p, value, h, t, self.activation), (x,), (self.jnp.ones_like(x),)
        )
        return self.layout.leave(f), self.layout.leave(d)

    def derivatives(self, p: Any, x: Any, t: Any = 0.0) -> Any:
        """f, D f and D^2 f."""
        h = self._h(p, x, t)
        ones = self.jnp.ones_like(x)

        def tau(value: Any) -> Any:
            return _transformer(self.layout, p, value, h, t, self.activation)

        def first(value: Any) -> Any:
            return self.jax.jvp(tau, (value,), (ones,))

        (f, d), (_, d2) = self.jax.jvp(first, (x,), (ones,))
        return f, d, d2

    def loss(self, p: Any, x: Any) -> Any:
        f, d = self.f_d(self.masked(p), x)
        return ((f * f).sum(1) / 2 + d.sum(1)).mean()
