"""Initial value problems dy/dt = f(t, y), with f a network or a function in Python, and their gradients."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _abi as abi
from ._data import as_array, as_context
from ._library import Context, Handle, lib
from ._net import Net


def methods() -> list[str]:
    """The names of the methods of :func:`odeint`."""
    names = lib.hl_ode_methods()
    found: list[str] = []
    while names[len(found)]:
        found.append(names[len(found)].decode())
    return found


class _Rows:
    """What a callback is given: the rows' times and states, as views that are valid during the call."""

    def __init__(self, pointer: int, n: int) -> None:
        at = abi.hl_rows.from_address(pointer)
        self.count = at.count
        self.t = np.ctypeslib.as_array((ctypes.c_double * at.count).from_address(at.t))
        self.y = _view(at.y, at.count, n)
        self.index = np.ctypeslib.as_array((ctypes.c_size_t * at.count).from_address(at.index))


def _view(address: int, count: int, n: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_double * (count * n)).from_address(address)).reshape(count, n)


class _PythonSystem:
    """A function of Python, and perhaps its vjp, as a system. Exceptions are kept and end the solve."""

    def __init__(
        self, f: Callable[..., Any], vjp: Callable[..., Any] | None, n: int, parameters: int, index: bool
    ) -> None:
        self.f, self.vjp, self.n, self.parameters, self.index = f, vjp, n, parameters, index
        self.error: BaseException | None = None
        self._rhs = abi.hl_rhs_fn(self._call_rhs)
        self.system = abi.hl_system(n=n, rhs=self._rhs, n_params=parameters)
        if vjp is not None:
            self._vjp = abi.hl_vjp_fn(self._call_vjp)
            self.system.vjp = self._vjp

    def _call_rhs(self, user: Any, at: int, dy: int) -> int:
        try:
            rows = _Rows(at, self.n)
            more = (rows.index,) if self.index else ()
            value = np.asarray(self.f(rows.t, rows.y, *more), dtype=np.float64)
            if value.shape != rows.y.shape:
                raise ValueError(f"f returned an array of shape {value.shape}, but {rows.y.shape} is expected")
            _view(dy, rows.count, self.n)[...] = value
        except BaseException as error:
            self.error = error
            return -1
        return 0

    def _call_vjp(self, user: Any, at: int, w: int, gy: int, gparam: int | None) -> int:
        try:
            assert self.vjp is not None
            rows = _Rows(at, self.n)
            more = (rows.index,) if self.index else ()
            result = self.vjp(rows.t, rows.y, _view(w, rows.count, self.n), *more)
            gradient, parameters = result if isinstance(result, tuple) else (result, None)
            _view(gy, rows.count, self.n)[...] = gradient
            if gparam and parameters is not None:
                _view(gparam, 1, self.parameters)[0] += parameters
        except BaseException as error:
            self.error = error
            return -1
        return 0


class _Solver:
    """A system and the options of its solves, on a context."""

    def __init__(
        self, owner: Context, system: Any, error: Callable[[], BaseException | None], options: Any, keep: Any
    ) -> None:
        self.owner, self.system, self.error, self.options, self.keep = owner, system, error, options, keep

    def ode(self) -> Handle:
        arguments = (self.owner.handle, ctypes.byref(self.system), ctypes.byref(self.options))
        return Handle(self.owner, lib.hl_ode_create, lib.hl_ode_free, *arguments, keep=self.keep)

    def check(self, status: int) -> None:
        error = self.error()
        if error is not None:
            raise error
        self.owner.check(status)


def odeint(
    f: Net | Callable[..., Any],
    y0: Any,
    t: Any,
    *,
    method: str = "dopri5",
    rtol: float = 1e-6,
    atol: float = 1e-8,
    steps: int = 0,
    max_evaluations: int = 0,
    context: Any = None,
    gradient: bool = False,
    vjp: Callable[..., Any] | None = None,
    parameters: int = 0,
    index: bool = False,
) -> Any:
    """Solve dy/dt = f(t, y) through the times t, each row with steps of its own.

    Parameters
    ----------
    f : Net or callable
        A network, or a function f(t, y) of times (rows) and states (rows x n) that returns rows x n values. A row's values
        must not depend on other rows.
    y0 : array
        The states at t[0]: rows x n, or n values for one row.
    t : array
        The first time and those at which the solution is wanted, rising or falling.
    method, rtol, atol, steps, max_evaluations
        See :func:`methods`; `steps` > 0 asks for that many equal steps between two times instead of tolerances.
    context : array
        Of a network: rows x context.
    gradient : bool
        Also return a function for gradients.
    vjp : callable
        Of a function f, for gradients: vjp(t, y, w) returns w' df/dy (rows x n), or a pair of this and the sum over the rows of
        w' df/dparameters (`parameters` values).
    index : bool
        f and vjp get one more argument: which rows of y0 these are, for functions whose rows carry data of their own.

    Returns
    -------
    y : array
        len(t) x rows x n (len(t) x n if y0 is one row).
    pull : callable, if `gradient`
        pull(gy), gy of the shape of y, gives the gradient of sum(gy * y) with respect to y0 and to the parameters: a dict by name
        for a network, else an array.

    Examples
    --------
    >>> import numpy as np, hollownet
    >>> y = hollownet.odeint(lambda t, y: -y, [1.0], [0.0, 1.0], rtol=1e-9, atol=1e-12)
    >>> bool(abs(y[-1, 0] - np.exp(-1)) < 1e-8)
    True
    """
    times = as_array(t, "t")
    if times.ndim != 1 or len(times) < 1:
        raise ValueError(f"t has shape {times.shape}, but at least one time in one dimension is expected")
    start = as_array(y0, "y0")
    single = start.ndim == 1
    start = np.array(start[None, :] if single else start)
    if start.ndim != 2 or start.size == 0:
        raise ValueError(f"y0 has shape {start.shape}, but rows x n values are expected")
    options = abi.hl_ode_options(
        method=method.encode(), rtol=rtol, atol=atol, steps=steps, max_evaluations=max_evaluations
    )
    if gradient:
        multistep = method.startswith(("adams", "bdf", "auto"))
        options.gradient = abi.HL_ADJOINT if multistep else abi.HL_REPLAY
        options.rows = len(start)
    if isinstance(f, Net):
        with f._locked() as owner:
            solver = _net_solver(owner, f, start, context, options)
            y, pull = _solve(solver, start, times, single, gradient, f)
    else:
        if context is not None:
            raise ValueError("a context is for networks; a function knows its own")
        if gradient and vjp is None:
            raise ValueError("the gradient of a solve needs the vjp of f")
        system = _PythonSystem(f, vjp, start.shape[1], parameters, index)
        solver = _Solver(Context(1), system.system, lambda: system.error, options, system)
        y, pull = _solve(solver, start, times, single, gradient, None)
    return (y, pull) if gradient else y


def _net_solver(owner: Context, net: Net, start: np.ndarray, context: Any, options: Any) -> _Solver:
    if start.shape[1] != net.dim:
        raise ValueError(f"y0 has {start.shape[1]} columns, but the network has {net.dim}")
    values = as_context(context, len(start), net.context)
    rows = options.rows or 256
    field = Handle(owner, lib.hl_field_create, lib.hl_field_free, net._handle.value, rows, keep=net._handle)
    if values is not None:
        lib.hl_field_set_context(field.value, values.ctypes.data)
    return _Solver(owner, lib.hl_field_system(field.value), lambda: None, options, (field, values))


def _solve(
    solver: _Solver, y: np.ndarray, times: np.ndarray, single: bool, gradient: bool, net: Net | None
) -> tuple[np.ndarray, Callable[[Any], Any] | None]:
    rows, n = y.shape
    clock = np.full(rows, times[0])
    out = np.empty((len(times), rows, n))
    out[0] = y
    odes: list[Handle] = []
    if gradient:  # one recorded solve from each time to the next
        for i in range(1, len(times)):
            odes.append(solver.ode())
            solver.check(lib.hl_ode_solve(odes[-1].value, rows, clock.ctypes.data, times[i], y.ctypes.data, None))
            out[i] = y
    elif len(times) > 1:
        ode, wanted = solver.ode(), np.ascontiguousarray(times[1:])
        tail = np.empty((len(times) - 1, rows, n))
        solver.check(
            lib.hl_ode_solve_at(
                ode.value,
                rows,
                clock.ctypes.data,
                len(wanted),
                wanted.ctypes.data,
                y.ctypes.data,
                tail.ctypes.data,
                None,
            )
        )
        out[1:] = tail
    shape = (len(times), n) if single else out.shape

    def pull(gy: Any) -> Any:
        given = np.asarray(gy, dtype=np.float64)
        if given.shape != shape:
            raise ValueError(f"gy has shape {given.shape}, but {shape} is expected")
        given = given.reshape(out.shape)
        g = given[-1].copy()
        size = solver.system.n_params
        gparam = np.zeros(max(size, 1))
        with solver.owner.lock:
            for i in reversed(range(len(odes))):
                solver.check(lib.hl_ode_gradient(odes[i].value, g.ctypes.data, gparam.ctypes.data if size else None))
                g += given[i]
        return (g[0] if single else g), _by_name(gparam[:size], net)

    return out.reshape(shape), pull if gradient else None


def _by_name(flat: np.ndarray, net: Net | None) -> Any:
    if net is None:
        return flat
    named, at = {}, 0
    for name, value in net.parameters.items():
        named[name] = flat[at : at + value.size].reshape(value.shape)
        at += value.size
    return named
