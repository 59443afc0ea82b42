"""Our side: the C library through ctypes, by the definitions of the Python package."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from hollownet import _abi as abi
from hollownet._library import Context, Handle, lib

Node = int


def _array(kind: Any, values: Any) -> Any:
    return (kind * max(len(values), 1))(*values)


class Graph:
    """An expression and its plan; methods not written here are those of hollow/graph.h without their prefix."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.handle = Handle(context, lib.hl_graph_create, lib.hl_graph_free, context.handle)
        self.params: list[Node] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(lib, "hl_" + name)
        return lambda *arguments: function(self.handle.value, *arguments)

    def input(self, name: str, *dims: int) -> Node:
        return int(lib.hl_input(self.handle.value, name.encode(), len(dims), _array(ctypes.c_size_t, dims)))

    def param(self, name: str, *dims: int) -> Node:
        node = int(lib.hl_param(self.handle.value, name.encode(), len(dims), _array(ctypes.c_size_t, dims)))
        self.params.append(node)
        return node

    def reshape(self, x: Node, *dims: int) -> Node:
        return int(lib.hl_reshape(self.handle.value, x, len(dims), _array(ctypes.c_size_t, dims)))

    def conv(self, x: Node, k: Node, stride: int = 1, pad: int = 0) -> Node:
        options = abi.hl_conv_options(stride=(stride, stride), pad=(pad, pad))
        return int(lib.hl_conv(self.handle.value, x, k, ctypes.byref(options)))

    def conv_transpose(self, x: Node, k: Node, size: int, stride: int, pad: int) -> Node:
        options = abi.hl_conv_options(stride=(stride, stride), pad=(pad, pad))
        return int(lib.hl_conv_transpose(self.handle.value, x, k, size, size, ctypes.byref(options)))

    def net(self, net: Any, x: Node, order: int = 1) -> tuple[Node, list[Node], Node]:
        """f, D^1 f .. D^order f and the divergence of a network; its parameters are added to this graph's."""
        count = lib.hl_net_param_count(net.value)
        param, d = (ctypes.c_int32 * count)(), (ctypes.c_int32 * order)()
        nodes = abi.hl_net_nodes(x=x, param=ctypes.addressof(param), d=ctypes.addressof(d))
        self.context.check(lib.hl_net_build(net.value, self.handle.value, order, abi.HL_TAYLOR, ctypes.byref(nodes)))
        self.params += list(param)
        return nodes.f, list(d), nodes.divergence

    def vjp(self, y: Node, x: list[Node], cotangent: Node = 0) -> list[Node]:
        out = (ctypes.c_int32 * len(x))()
        self.context.check(
            lib.hl_vjp(
                self.handle.value,
                1,
                _array(ctypes.c_int32, [y]),
                _array(ctypes.c_int32, [cotangent]),
                len(x),
                _array(ctypes.c_int32, x),
                None,
                out,
            )
        )
        return list(out)

    def plan(self, outputs: list[Node]) -> Plan:
        return Plan(self, outputs)


class Plan:
    """A compiled graph: called with its inputs and parameters, it returns its outputs in arrays that it keeps."""

    def __init__(self, graph: Graph, outputs: list[Node]) -> None:
        options = abi.hl_plan_options(isa=os.environ.get("HOLLOW_BENCH_ISA", "").encode() or None)
        self.context = graph.context
        self.shapes, self.batched = [], []
        for node in outputs:
            rank = lib.hl_node_rank(graph.handle.value, node)
            self.shapes.append(tuple(lib.hl_node_dim(graph.handle.value, node, i) for i in range(rank)))
            self.batched.append(bool(lib.hl_node_batched(graph.handle.value, node)))
        self.handle = Handle(
            graph.context,
            lib.hl_plan_create,
            lib.hl_plan_free,
            graph.context.handle,
            graph.handle.value,
            len(outputs),
            _array(ctypes.c_int32, outputs),
            ctypes.byref(options),
        )

    def bind(self, rows: int, inputs: list[np.ndarray], params: list[np.ndarray]) -> Callable[[], list[np.ndarray]]:
        """A call without arguments, which runs the plan and nothing else."""
        results = [
            np.empty((rows, *shape) if batched else shape, np.float32)
            for shape, batched in zip(self.shapes, self.batched, strict=True)
        ]
        keep = [np.ascontiguousarray(a, np.float32) for a in [*inputs, *params]]
        source = _array(ctypes.c_void_p, [a.ctypes.data for a in keep[: len(inputs)]])
        param = _array(ctypes.c_void_p, [a.ctypes.data for a in keep[len(inputs) :]])
        target = _array(ctypes.c_void_p, [a.ctypes.data for a in results])

        def run() -> list[np.ndarray]:
            assert keep
            self.context.check(lib.hl_plan_run(self.handle.value, rows, source, param, target))
            return results

        return run


def network(context: Context, **sizes: int) -> Any:
    """A network with random weights."""
    spec = abi.hl_net_spec(**sizes)
    net = Handle(context, lib.hl_net_create, lib.hl_net_free, context.handle, ctypes.byref(spec))
    context.check(lib.hl_net_init(net.value, 1))
    return net


def net_parameters(net: Any) -> dict[str, np.ndarray]:
    """The parameters by name: copies."""
    values = {}
    for index in range(lib.hl_net_param_count(net.value)):
        param = abi.hl_net_param()
        lib.hl_net_param_get(net.value, index, ctypes.byref(param))
        memory = (ctypes.c_float * param.size).from_address(param.values)
        values[param.name.decode()] = np.array(memory, np.float32).reshape(tuple(param.dims[: param.rank]))
    return values


class Flow:
    """The flow of a density model; rows are standardised."""

    def __init__(self, context: Context, path: str) -> None:
        self.context = context
        self.model = Handle(context, lib.hl_density_load, lib.hl_density_free, context.handle, path.encode())
        self.flow = lib.hl_density_flow(self.model.value)
        self.dim = int(lib.hl_density_dim(self.model.value))
        self.solver = lib.hl_density_solver(self.model.value)

    def standardised(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the units of the data, as the flow sees them."""
        x = np.array(rows, np.float64)
        lib.hl_density_standardise(self.model.value, len(x), x.ctypes.data, None)
        return x

    def solve_by(self, method: str, tolerance: float = 0, steps: int = 0) -> None:
        s = abi.hl_flow_solver(method=method.encode(), rtol=tolerance, atol=tolerance, steps=steps, start_error=10)
        self.context.check(lib.hl_flow_set_solver(self.flow, ctypes.byref(s)))

    def solve_as_calibrated(self) -> None:
        s = lib.hl_density_solver(self.model.value)
        self.context.check(lib.hl_flow_set_solver(self.flow, ctypes.byref(s)))

    def logp(self, x: np.ndarray) -> Callable[[], np.ndarray]:
        x, out = np.ascontiguousarray(x, np.float64), np.empty(len(x))

        def run() -> np.ndarray:
            self.context.check(lib.hl_flow_logp(self.flow, len(x), x.ctypes.data, None, out.ctypes.data))
            return out

        return run

    def sample(self, z: np.ndarray) -> Callable[[], np.ndarray]:
        z, out = np.ascontiguousarray(z, np.float64), np.empty(z.shape)

        def run() -> np.ndarray:
            self.context.check(lib.hl_flow_inverse(self.flow, len(z), z.ctypes.data, None, out.ctypes.data, None))
            return out

        return run

    def gradient(self, x: np.ndarray, size: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """log p, and the gradient of the mean of -log p to all parameters."""
        x, out, gradient = np.ascontiguousarray(x, np.float64), np.empty(len(x)), np.empty(size)

        def run() -> tuple[np.ndarray, np.ndarray]:
            gradient[:] = 0
            self.context.check(
                lib.hl_flow_gradient(self.flow, len(x), x.ctypes.data, None, out.ctypes.data, gradient.ctypes.data)
            )
            return out, gradient

        return run

    def evaluations(self, run: Callable[[], Any], rows: int) -> float:
        """Evaluations of the network for a row."""
        lib.hl_flow_reset(self.flow)
        run()
        return float(lib.hl_flow_report(self.flow).forward.f) / rows
