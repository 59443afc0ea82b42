"""Hollow networks and their operator: f, its dimension-wise derivatives, the divergence, and gradients of all of them."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from . import _abi as abi
from ._data import pointer
from ._library import Context, Handle, Model, lib

_DTYPES = {"float32": (abi.HL_F32, np.float32), "float64": (abi.HL_F64, np.float64)}


class Evaluation(NamedTuple):
    """Results of :meth:`Net.eval`; what was not asked for is None."""

    f: Any  #: rows x dim
    d: Any  #: order x rows x dim: d[k-1] is D^k f = (d^k f_i / dx_i^k)
    divergence: Any  #: rows


class Gradients(NamedTuple):
    """Results of :meth:`Net.vjp`."""

    x: Any  #: rows x dim
    t: Any  #: rows, or None without time
    context: Any  #: rows x context, or None without context
    parameters: dict[str, Any]  #: by name, summed over the rows


class Net(Model):
    """A hollow network f_i = tau(x_i, h_i, t, context), where h_i never sees x_i.

    Its dimension-wise derivatives D^k f and its divergence are exact and cost about as much as f.

    Parameters
    ----------
    dim : int
        Values per row.
    context, time : int, bool
        Context values per row; whether t is an input.
    conditioner : str
        "made" (default), "separate", "sum", "tree", "attention", "conv", or for flows "autoregressive", "coupling", "none".
    transformer : str
        "shared" (default), "per-dimension", "additive", "affine", "monotone".
    order : sequence of int
        The order in which the conditioner takes the columns.
    image, kernel : (int, int, int), int
        Of "conv": channels, height and width; size of the kernel.
    features, hidden, hidden_layers, width, layers : int
        Sizes of h_i, of the conditioner and of the transformer.
    activation : str
        "tanh" (default), "softplus", "swish", "elu", "sigmoid".
    reflections, mlp : int
        Another orthonormal basis; units of a plain network that is added.
    dtype : str
        "float32" (default) or "float64".
    seed : int
        Of the random weights.
    threads : int
        Changes no bit of any result.

    Examples
    --------
    >>> import numpy as np, hollownet
    >>> net = hollownet.Net(dim=3, dtype="float64", seed=1)
    >>> x = np.random.default_rng(0).normal(size=(5, 3))
    >>> f, d, divergence = net.eval(x, order=2)
    >>> d.shape
    (2, 5, 3)
    >>> bool(np.allclose(d[0].sum(axis=1), divergence))
    True
    """

    _save, _load, _write, _read, _free = "hl_net_save", "hl_net_load", "hl_net_write", "hl_net_read", "hl_net_free"

    def __init__(
        self,
        dim: int,
        *,
        context: int = 0,
        time: bool = False,
        conditioner: str | None = None,
        transformer: str | None = None,
        order: Any = None,
        image: tuple[int, int, int] | None = None,
        kernel: int = 0,
        features: int = 0,
        hidden: int = 0,
        hidden_layers: int = 0,
        width: int = 0,
        layers: int = 0,
        activation: str | None = None,
        reflections: int = 0,
        mlp: int = 0,
        dtype: str = "float32",
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        spec = abi.hl_net_spec(time=int(time), hidden_layers=hidden_layers, layers=layers, dtype=_dtype(dtype)[0])
        sizes = dict(dim=dim, context=context, kernel=kernel, features=features, hidden=hidden, width=width)
        for name, value in dict(sizes, reflections=reflections, mlp=mlp).items():
            if isinstance(value, bool) or int(value) != value or value < 0:
                raise ValueError(f"{name} is {value!r}; it must be an integer that is not negative")
            setattr(spec, name, int(value))
        for name, text in dict(conditioner=conditioner, transformer=transformer, activation=activation).items():
            setattr(spec, name, None if text is None else text.encode())
        if image is not None:
            spec.image = (ctypes.c_size_t * 3)(*image)
        if order is not None:
            columns = np.ascontiguousarray(order, dtype=np.uintp)
            if columns.shape != (dim,):
                raise ValueError(f"order has shape {columns.shape}, but {(dim,)} is expected")
            spec.order = columns.ctypes.data

        def create(context: Context) -> Handle:
            handle = Handle(context, lib.hl_net_create, lib.hl_net_free, context.handle, ctypes.byref(spec))
            context.check(lib.hl_net_init(handle.value, seed))
            return handle

        super().__init__(create, threads)

    # ---- what it is ----

    def _spec(self) -> Any:
        return lib.hl_net_describe(self._handle.value)

    @property
    def dim(self) -> int:
        """Values per row."""
        return int(self._spec().dim)

    @property
    def context(self) -> int:
        """Context values per row."""
        return int(self._spec().context)

    @property
    def time(self) -> bool:
        """Whether t is an input."""
        return bool(self._spec().time)

    @property
    def dtype(self) -> np.dtype:
        """The precision of arguments and results."""
        return np.dtype(np.float64 if self._spec().dtype == abi.HL_F64 else np.float32)

    @property
    def size(self) -> int:
        """The number of trainable values."""
        return int(lib.hl_net_size(self._handle.value))

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The parameters by name: views of the network's memory, which may be written.

        Entries that a mask excludes must stay zero, which updates by the network's own gradients keep.
        """
        with self._locked():
            return self._parameters()

    def _parameters(self) -> dict[str, np.ndarray]:
        if "parameters" in self._cache:
            return dict(self._cache["parameters"])
        views, masks = {}, {}
        dtype = self.dtype
        for index in range(lib.hl_net_param_count(self._handle.value)):
            param = abi.hl_net_param()
            self._context.check(lib.hl_net_param_get(self._handle.value, index, ctypes.byref(param)))
            kind = ctypes.c_double if dtype == np.float64 else ctypes.c_float
            memory = (kind * param.size).from_address(param.values)
            memory._owner = self._handle  # the memory is there as long as a view of it is
            shape = tuple(param.dims[: param.rank])
            views[param.name.decode()] = np.ctypeslib.as_array(memory).reshape(shape)
            if param.lo:
                masks[param.name.decode()] = _mask(param, shape)
        self._cache["parameters"], self._cache["masks"] = views, masks
        return dict(views)

    @property
    def masks(self) -> dict[str, np.ndarray]:
        """For the parameters that have one: an array of the parameter's shape, False where it must be zero."""
        with self._locked():
            self._parameters()
            return dict(self._cache["masks"])

    def set_parameters(self, values: dict[str, Any]) -> None:
        """Copy arrays, by name, into the parameters; where a mask excludes entries, they become zero."""
        with self._locked():
            own = self._parameters()
            for name, value in values.items():
                if name not in own:
                    raise KeyError(f"the network has no parameter {name!r}")
                mask = self._cache["masks"].get(name)
                own[name][...] = value if mask is None else np.where(mask, value, 0)

    def init(self, seed: int) -> None:
        """Draw new random weights."""
        with self._locked() as context:
            context.check(lib.hl_net_init(self._handle.value, seed))

    def __repr__(self) -> str:
        return f"Net(dim={self.dim}, context={self.context}, time={self.time}, dtype='{self.dtype}', size={self.size})"

    # ---- the operator ----

    def _operator(self, order: int, gradient: bool) -> Any:
        key = ("operator", order, gradient)
        if key not in self._cache:
            options = abi.hl_operator_options(order=order if order > 0 else -1, no_gradient=int(not gradient))
            net = self._handle
            self._cache[key] = Handle(
                self._context, lib.hl_operator_create, lib.hl_operator_free, net.value, ctypes.byref(options), keep=net
            )
        return self._cache[key].value

    def _array(self, values: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
        array = np.ascontiguousarray(values, dtype=self.dtype)
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, but {shape} is expected")
        return array

    def _inputs(self, x: Any, t: Any, context: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        rows = np.ascontiguousarray(x, dtype=self.dtype)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise ValueError(f"x has shape {rows.shape}, but (rows, {self.dim}) is expected")
        count = rows.shape[0]
        if (t is not None) != self.time:
            raise ValueError("the network has no time, but t is given" if t is not None else "the network needs t")
        if (context is not None) != (self.context > 0):
            raise ValueError(
                "the network has no context, but one is given" if context is not None else "the network needs a context"
            )
        if t is not None:
            t = self._array(np.broadcast_to(np.asarray(t), (count,)) if np.ndim(t) == 0 else t, (count,), "t")
        if context is not None:
            context = self._array(context, (count, self.context), "context")
        return rows, t, context

    def eval(
        self, x: Any, t: Any = None, context: Any = None, *, order: int = 1, divergence: bool = True
    ) -> Evaluation:
        """f, D^1 f .. D^order f and the divergence of every row of x, exact.

        `order` 0 gives f alone.
        """
        with self._locked() as owner:
            x, t, context = self._inputs(x, t, context)
            op = self._operator(order, False)
            f = np.empty_like(x)
            d = np.empty((order, *x.shape), x.dtype) if order > 0 else None
            div = np.empty(len(x), x.dtype) if order > 0 and divergence else None
            targets = (ctypes.c_void_p * max(order, 1))(*(part.ctypes.data for part in d) if d is not None else ())
            status = lib.hl_operator_eval(
                op,
                len(x),
                pointer(x),
                pointer(t),
                pointer(context),
                pointer(f),
                targets if order > 0 else None,
                pointer(div),
            )
            owner.check(status)
        return Evaluation(f, d, div)

    def __call__(self, x: Any, t: Any = None, context: Any = None) -> np.ndarray:
        """f of every row of x."""
        return self.eval(x, t, context, order=0).f

    def vjp(
        self, x: Any, t: Any = None, context: Any = None, *, gf: Any = None, gd: Any = None, gdivergence: Any = None
    ) -> Gradients:
        """Gradients of sum(gf * f) + sum(gd * d) + sum(gdivergence * divergence).

        `gf` is rows x dim, `gd` order x rows x dim, `gdivergence` one value per row; what is None is zero.
        """
        with self._locked() as owner:
            x, t, context = self._inputs(x, t, context)
            order = 1 if gd is None else len(gd)
            op = self._operator(order, True)
            gf = None if gf is None else self._array(gf, x.shape, "gf")
            gd = None if gd is None else self._array(gd, (order, *x.shape), "gd")
            gdiv = None if gdivergence is None else self._array(gdivergence, (len(x),), "gdivergence")
            gx = np.empty_like(x)
            gt = None if t is None else np.empty_like(t)
            gcontext = None if context is None else np.empty_like(context)
            gparam = {name: np.empty_like(value) for name, value in self._parameters().items()}
            sources = None if gd is None else (ctypes.c_void_p * order)(*(part.ctypes.data for part in gd))
            results = (ctypes.c_void_p * len(gparam))(*(g.ctypes.data for g in gparam.values()))
            status = lib.hl_operator_vjp(
                op, len(x), pointer(x), pointer(t), pointer(context), pointer(gf), sources, pointer(gdiv), pointer(gx),
                pointer(gt), pointer(gcontext), results,
            )  # fmt: skip
            owner.check(status)
        return Gradients(gx, gt, gcontext, gparam)


def _mask(param: Any, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = param.size // shape[-1], np.arange(shape[-1])
    low, high = (np.ctypeslib.as_array((ctypes.c_uint32 * rows).from_address(p)) for p in (param.lo, param.hi))
    return ((columns >= low[:, None]) & (columns < high[:, None])).reshape(shape)


def _dtype(name: Any) -> tuple[int, Any]:
    try:
        return _DTYPES[np.dtype(name).name]
    except (KeyError, TypeError):
        raise ValueError(f"dtype is {name!r}; it must be 'float32' or 'float64'") from None
