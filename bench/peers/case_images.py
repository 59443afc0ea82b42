"""Convolutions, dense layers, and a training step of the autoencoders `small`, `mid` and `paper`, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import ours
import torch
from hollownet._library import Context
from measure import Bench

ROWS = 100
LAYERS = {  # channels in, channels out, kernel, image, stride
    "3x3 32-32 28": (32, 32, 3, 28, 1),
    "5x5 32-32 28": (32, 32, 5, 28, 1),
    "3x3 64-64 14": (64, 64, 3, 14, 1),
    "5x5 64-64 14": (64, 64, 5, 14, 1),
    "5x5 1-32 28 stride 2": (1, 32, 5, 28, 2),
    "5x5 16-64 14 stride 2": (16, 64, 5, 14, 2),
}
DENSE = {"784-512": (784, 512), "300-600": (300, 600), "256-64": (256, 64)}
LIMIT = 1e-3
JOBS = (" forward", " to data", " to weights")


def run(bench: Bench, options: Any) -> None:
    rng = np.random.default_rng(3)
    for name, sizes in list(LAYERS.items())[: 4 if options.quick else None]:
        if any(bench.wants(f"conv/{name}{job}", "torch") for job in JOBS):
            convolution(bench, f"conv/{name}", rng, *sizes)
    for name, (inputs, outputs) in DENSE.items():
        if any(bench.wants(f"dense/{name}{job}", "torch") for job in JOBS):
            dense(bench, f"dense/{name}", rng, inputs, outputs)
    for name in ("small", "mid", "paper"):
        if bench.wants(f"vae/{name}", "torch"):
            autoencoder(bench, name, rng)


def random(rng: Any, *shape: int) -> np.ndarray:
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def layer_cases(
    bench: Bench, case: str, g: Any, x: int, y: int, rows: np.ndarray, w: np.ndarray, cotangent: np.ndarray,
    function: Callable[..., Any],
) -> None:  # fmt: skip
    """Forward, gradient to the rows, gradient to the weights. `function` is the layer in PyTorch."""
    node = g.input("gy", *cotangent.shape[1:])
    to_x, to_w = g.vjp(y, [x, g.params[0]], node)
    data = torch.from_numpy(rows).requires_grad_()
    weight = torch.from_numpy(w).requires_grad_()
    gy = torch.from_numpy(cotangent)
    out = function(data, weight)

    def forward() -> list[Any]:
        with torch.no_grad():
            return [function(data, weight)]

    def gradient(to: Any) -> Callable[[], list[Any]]:
        return lambda: list(torch.autograd.grad(out, [to], gy, retain_graph=True))

    inputs = [rows, cotangent]
    bench.compare(case + " forward", "torch", g.plan([y]).bind(len(rows), inputs, [w]), forward, LIMIT)
    bench.compare(case + " to data", "torch", g.plan([to_x]).bind(len(rows), inputs, [w]), gradient(data), LIMIT)
    bench.compare(case + " to weights", "torch", g.plan([to_w]).bind(len(rows), inputs, [w]), gradient(weight), LIMIT)


def convolution(bench: Bench, case: str, rng: Any, into: int, out: int, kernel: int, size: int, stride: int) -> None:
    g = ours.Graph(Context(bench.threads))
    x = g.input("x", into, size, size)
    y = g.conv(x, g.param("w", out, into, kernel, kernel), stride, kernel // 2)
    smaller = (size - 1) // stride + 1
    layer_cases(
        bench, case, g, x, y, random(rng, ROWS, into, size, size), random(rng, out, into, kernel, kernel),
        random(rng, ROWS, out, smaller, smaller),
        lambda data, w: torch.nn.functional.conv2d(data, w, stride=stride, padding=kernel // 2),
    )  # fmt: skip


def dense(bench: Bench, case: str, rng: Any, inputs: int, outputs: int) -> None:
    g = ours.Graph(Context(bench.threads))
    x = g.input("x", inputs)
    y = g.linear(x, g.param("w", outputs, inputs))
    layer_cases(
        bench, case, g, x, y, random(rng, ROWS, inputs), random(rng, outputs, inputs), random(rng, ROWS, outputs),
        torch.nn.functional.linear,
    )  # fmt: skip


# ---- a training step of an autoencoder: loss and all gradients ----

CODE, LATENT = 256, 64
NETS = {  # channels, kernel, stride; the first of a decoder is dense, to an image of 7 x 7
    "small": ([(16, 5, 2), (32, 5, 2), (32, 3, 1)], [(32, 0, 1), (32, 3, 1), (16, 5, 2), (16, 5, 2)]),
    "mid": (
        [(32, 5, 2), (32, 5, 1), (64, 5, 2), (64, 3, 1)],
        [(64, 0, 1), (64, 3, 1), (32, 5, 2), (32, 5, 1), (32, 5, 2)],
    ),
    "paper": (
        [(32, 5, 1), (32, 5, 2), (64, 5, 1), (64, 5, 2), (64, 5, 1)],
        [(64, 0, 1), (64, 5, 1), (32, 5, 2), (32, 5, 1), (32, 5, 2), (32, 5, 1)],
    ),
}


class TorchOps:
    def __init__(self, params: list[Any]) -> None:
        self.left = iter(params)

    def weight(self, *dims: int) -> Any:
        return next(self.left)

    def gate(self, y: Any) -> Any:
        a, b = y.chunk(2, 1)
        return a * torch.sigmoid(b)

    def conv(self, y: Any, w: Any, b: Any, stride: int, pad: int) -> Any:
        return torch.nn.functional.conv2d(y, w, b, stride, pad)

    def up(self, y: Any, w: Any, b: Any, size: int, pad: int) -> Any:
        return torch.nn.functional.conv_transpose2d(y, w, b, 2, pad, size - 2 * y.shape[-1] + 1)

    def dense(self, y: Any, w: Any, b: Any) -> Any:
        return torch.nn.functional.linear(y, w, b)

    def image(self, y: Any, *dims: int) -> Any:
        return y.reshape(-1, *dims)

    flat = image

    def loss(self, x: Any, noise: Any, mean: Any, raw: Any, decode: Callable[[Any], Any]) -> Any:
        variance = torch.nn.functional.softplus(raw) + 1e-6
        z = mean + variance.sqrt() * noise
        logits = decode(z)
        fit = (x * logits - torch.nn.functional.softplus(logits)).sum(1)
        ratio = 0.5 * (noise * noise + variance.log() - z * z).sum(1)
        return -(fit + ratio).mean()


class OurOps:
    def __init__(self, g: ours.Graph, rows: int) -> None:
        self.g, self.rows = g, rows
        self.shapes: list[tuple[int, ...]] = []

    def weight(self, *dims: int) -> int:
        self.shapes.append(dims)
        return self.g.param(f"w{len(self.shapes)}", *dims)

    def gate(self, y: int) -> int:
        half = self.g.node_dim(y, 0) // 2
        return self.g.mul(self.g.slice(y, 0, 0, half), self.g.sigmoid(self.g.slice(y, 0, half, half)))

    def biased(self, y: int, b: int) -> int:
        return self.g.add(y, self.g.reshape(b, self.g.node_dim(y, 0), 1, 1))

    def conv(self, y: int, w: int, b: int, stride: int, pad: int) -> int:
        return self.biased(self.g.conv(y, w, stride, pad), b)

    def up(self, y: int, w: int, b: int, size: int, pad: int) -> int:
        return self.biased(self.g.conv_transpose(y, w, size, 2, pad), b)

    def dense(self, y: int, w: int, b: int) -> int:
        return self.g.add(self.g.linear(y, w), b)

    def image(self, y: int, *dims: int) -> int:
        return self.g.reshape(y, *dims)

    flat = image

    def loss(self, x: int, noise: int, mean: int, raw: int, decode: Callable[[int], int]) -> int:
        g = self.g
        variance = g.add(g.softplus(raw), g.const(1e-6))
        z = g.add(mean, g.mul(g.sqrt(variance), noise))
        logits = decode(z)
        fit = g.sum(g.sub(g.mul(x, logits), g.softplus(logits)), 0)
        spread = g.sub(g.add(g.mul(noise, noise), g.log(variance)), g.mul(z, z))
        row = g.add(fit, g.scale(0.5, g.sum(spread, 0)))
        return int(g.sum_rows(g.scale(-1 / self.rows, row)))


def build(ops: Any, name: str, x: Any, noise: Any) -> Any:
    """The loss. Weights are asked for in the order of their use."""
    encoder, decoder = NETS[name]
    y, channels, size = ops.image(x, 1, 28, 28), 1, 28
    for out, kernel, stride in encoder:
        w, b = ops.weight(2 * out, channels, kernel, kernel), ops.weight(2 * out)
        y, channels, size = ops.gate(ops.conv(y, w, b, stride, kernel // 2)), out, (size - 1) // stride + 1
    count = channels * size * size
    code = ops.gate(ops.dense(ops.flat(y, count), ops.weight(2 * CODE, count), ops.weight(2 * CODE)))
    mean = ops.dense(code, ops.weight(LATENT, CODE), ops.weight(LATENT))
    raw = ops.dense(code, ops.weight(LATENT, CODE), ops.weight(LATENT))

    def decode(z: Any) -> Any:
        first, size = 2 * decoder[0][0], 7
        y = ops.dense(z, ops.weight(first * 49, LATENT), ops.weight(first * 49))
        y, channels = ops.gate(ops.image(y, first, 7, 7)), decoder[0][0]
        for out, kernel, stride in decoder[1:]:
            shape = (channels, 2 * out) if stride > 1 else (2 * out, channels)
            w, b = ops.weight(*shape, kernel, kernel), ops.weight(2 * out)
            size *= stride
            y = ops.up(y, w, b, size, kernel // 2) if stride > 1 else ops.conv(y, w, b, 1, kernel // 2)
            y, channels = ops.gate(y), out
        return ops.flat(ops.conv(y, ops.weight(1, channels, 1, 1), ops.weight(1), 1, 0), 784)

    return ops.loss(x, noise, mean, raw, decode)


def autoencoder(bench: Bench, name: str, rng: Any) -> None:
    rows = 128
    g = ours.Graph(Context(bench.threads))
    ops = OurOps(g, rows)
    loss = build(ops, name, g.input("x", 784), g.input("noise", LATENT))
    x = (rng.random((rows, 784)) < 0.2).astype(np.float32)
    noise = rng.normal(size=(rows, LATENT)).astype(np.float32)
    weights = [random(rng, *shape) if len(shape) > 1 else np.zeros(shape, np.float32) for shape in ops.shapes]
    mine = g.plan([loss, *g.vjp(loss, g.params)]).bind(rows, [x, noise], weights)
    params = [torch.from_numpy(w).requires_grad_() for w in weights]
    data, normal = torch.from_numpy(x), torch.from_numpy(noise)

    def theirs() -> list[Any]:
        value = build(TorchOps(params), name, data, normal)
        return [value.detach(), *torch.autograd.grad(value, params)]

    bench.compare(f"vae/{name}", "torch", mine, theirs, LIMIT)
