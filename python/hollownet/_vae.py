"""Variational autoencoders whose approximate posterior is a flow."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from . import _abi as abi
from ._data import as_rows, as_seed, pointer
from ._errors import make_error
from ._estimator import Bar, Fitted, Job
from ._library import Context, Model, check_threads, lib
from ._options import constructor, document, make_settings, read_table
from ._report import Report, report_vae

_TABLE = "hl_vae_fit_options"
_OPTIONS = read_table(_TABLE)


class VAEModel(Model):
    """A model of the library; :class:`VAE` holds one."""

    _save, _load, _write, _read, _free = "hl_vae_save", "hl_vae_load", "hl_vae_write", "hl_vae_read", "hl_vae_free"

    @property
    def dim(self) -> int:
        return int(lib.hl_vae_dim(self._handle.value))

    @property
    def latent(self) -> int:
        return int(lib.hl_vae_describe(self._handle.value).latent)


class _Rows:
    """Rows for the library: bytes as they are, other numbers as doubles."""

    def __init__(self, X: Any, name: str = "X", columns: int | None = None) -> None:
        array = np.asarray(X)
        if array.ndim > 2:
            array = array.reshape(len(array), -1)
        self.gray = False
        if array.dtype in (np.uint8, np.bool_):
            as_rows(array[:1], name, columns)  # for its checks
            self.array = np.ascontiguousarray(array, dtype=np.uint8)
            self.gray = bool(self.array.size and self.array.max() > 1)
            self.rows = abi.hl_vae_rows(rows=len(self.array), bytes=pointer(self.array), gray=int(self.gray))
        else:
            self.array = as_rows(array, name, columns)
            self.rows = abi.hl_vae_rows(rows=len(self.array), values=pointer(self.array))


class VAE(Fitted):
    _kind = VAEModel
    _model: VAEModel

    __init__ = constructor({**{option.keyword: None for option in _OPTIONS}, "threads": None, "verbose": 0})

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        X_valid: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> VAE:
        """Train on rows of values 0 and 1, of gray values 0..255 (uint8), or, with likelihood="gaussian", of real numbers.

        Images are rows x height x width or rows x channels x height x width; the convolutional networks need this shape. Ctrl-C
        ends training: the best model so far is kept, and KeyboardInterrupt raised.
        """
        shape = np.shape(X)
        data = abi.hl_vae_data()
        train = _Rows(X)
        valid = None if X_valid is None else _Rows(X_valid, "X_valid", train.array.shape[1])
        if len(shape) in (3, 4):
            data.image = (ctypes.c_size_t * 3)(*((1, *shape[1:]) if len(shape) == 3 else shape[1:]))
        else:
            data.dim = train.array.shape[1]
        data.train = train.rows
        if valid is not None:
            data.valid = valid.rows
        self._run(data, checkpoint, resume)
        return self

    def _run(self, data: Any, checkpoint: Any, resume: bool) -> None:
        owner = Context(check_threads(self.threads))  # type: ignore[attr-defined]
        values = self.get_params(deep=False)  # type: ignore[attr-defined]
        if values.get("random_state") is not None:
            values["random_state"] = as_seed(values["random_state"]) % 2**53
        settings = make_settings(owner, _TABLE, _OPTIONS, values)
        history: dict[str, list[float]] = {"iteration": [], "loss": [], "validation": []}
        bar = Bar(values.get("verbose"), "hollow vae fit")

        def report(progress: Any) -> None:
            if progress.validated:
                history["iteration"].append(progress.iteration)
                history["loss"].append(progress.loss)
                history["validation"].append(progress.validation)
            bar.show(progress.iteration, progress.iterations, f"best {progress.best:.4g}")

        job = Job(abi.hl_vae_progress, report, checkpoint, resume)
        vae, outcome = ctypes.c_void_p(), abi.hl_vae_outcome()
        try:
            status = job.run(
                lambda pointer: lib.hl_vae_fit(
                    owner.handle,
                    ctypes.byref(data),
                    settings.value,
                    pointer,
                    ctypes.byref(vae),
                    ctypes.byref(outcome),
                )
            )
        finally:
            bar.close()
            model = VAEModel._adopt(owner, vae.value) if vae.value else None
        if model is not None:
            self._model, self.history_ = model, history
            self.n_features_in_ = model.dim
            self.n_iter_, self.validation_loss_ = int(outcome.iteration), float(outcome.best)
        if job.interrupted:
            raise KeyboardInterrupt
        if status < 0:
            raise make_error(status, lib.hl_context_message(owner.handle).decode("utf-8", "replace"))

    # ---- using it ----

    def evaluate(self, X: Any, *, samples: int = 1, importance: int = 0, random_state: Any = None) -> dict[str, Any]:
        """Means over the rows: `elbo`, and, with `importance` k > 0, IWAE-k (`iwae`), a lower bound of log p(x).

        `rows` has both for every row. All are in nats per row.
        """
        model = self._fitted()
        data = _Rows(X, "X", model.dim)
        seed = as_seed(random_state)
        options = abi.hl_vae_eval_options(seed=seed, samples=samples, importance=importance)
        each, result = (abi.hl_vae_row_result * len(data.array))(), abi.hl_vae_result()
        with model._locked() as owner:
            handle, rows = model._handle.value, ctypes.byref(data.rows)
            owner.check(lib.hl_vae_evaluate(handle, rows, ctypes.byref(options), each, ctypes.byref(result)))
        numbers: dict[str, Any] = {field[0]: getattr(result, field[0]) for field in abi.hl_vae_result._fields_}
        numbers["rows"] = {name: np.array([getattr(row, name) for row in each]) for name in ("elbo", "iwae")}
        return numbers

    def score_samples(self, X: Any, *, importance: int = 100, random_state: Any = None) -> np.ndarray:
        """A lower bound of log p(x) of every row, IWAE with this many samples.

        A row's number does not depend on the other rows, but of equal rows each has samples of its own.
        """
        numbers = self.evaluate(X, importance=importance, random_state=random_state)
        return numbers["rows"]["iwae"]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of score_samples."""
        return float(np.mean(self.score_samples(X)))

    def report(self, X: Any, *, random_state: Any = 0, title: str = "Autoencoder") -> Report:
        """Look at the model with rows of data: a verdict, numbers, and a page with samples and reconstructions."""
        data = _Rows(X, "X", self._fitted().dim)
        return report_vae(self._fitted(), data.rows, random_state, title)

    def transform(self, X: Any) -> np.ndarray:
        """The mean of the normal variable that the posterior's flow begins with: rows x latent."""
        model = self._fitted()
        data = _Rows(X, "X", model.dim)
        mean = np.empty((len(data.array), model.latent))
        with model._locked() as owner:
            owner.check(lib.hl_vae_encode(model._handle.value, ctypes.byref(data.rows), 0, pointer(mean), None))
        return mean

    def encode(self, X: Any, random_state: Any = None) -> np.ndarray:
        """A sample of z from the posterior of every row."""
        model = self._fitted()
        data = _Rows(X, "X", model.dim)
        z = np.empty((len(data.array), model.latent))
        with model._locked() as owner:
            rows = ctypes.byref(data.rows)
            owner.check(lib.hl_vae_encode(model._handle.value, rows, as_seed(random_state), None, pointer(z)))
        return z

    def decode(self, Z: Any) -> np.ndarray:
        """The mean of p(x | z) of every row of Z."""
        model = self._fitted()
        z = as_rows(Z, "Z", model.latent)
        mean = np.empty((len(z), model.dim))
        with model._locked() as owner:
            owner.check(lib.hl_vae_decode(model._handle.value, len(z), pointer(z), pointer(mean)))
        return mean

    def reconstruct(self, X: Any, random_state: Any = None) -> np.ndarray:
        """The mean of p(x | z) of every row, for z sampled from its posterior."""
        return self.decode(self.encode(X, random_state))

    def sample(self, n_samples: int = 1, random_state: Any = None, *, draw: bool = False) -> np.ndarray:
        """The means of p(x | z) for z from the standard normal distribution; with `draw`, draws of x given z instead: bits, or values
        with the learned noise."""
        model = self._fitted()
        if isinstance(n_samples, bool) or int(n_samples) != n_samples or n_samples < 1:
            raise ValueError(f"n_samples is {n_samples!r}; it must be an integer of at least 1")
        mean = np.empty((int(n_samples), model.dim))
        seed = as_seed(random_state)
        with model._locked() as owner:
            owner.check(lib.hl_vae_sample(model._handle.value, len(mean), seed, None, pointer(mean)))
            if draw:
                owner.check(lib.hl_vae_draw(model._handle.value, len(mean), seed, pointer(mean)))
        return mean


VAE.__doc__ = f"""A variational autoencoder whose approximate posterior may be a flow.

Parameters
----------
{document(_OPTIONS)}
threads : int, optional
    Threads; changes no bit of any result. Default: all cores.
verbose : int, optional
    Nonzero: show progress. Default: 0.

Attributes
----------
history_ : dict
    iteration, loss and validation (mean -ELBO) of every validation.
validation_loss_ : float
    The best of these after beta has reached 1.

Examples
--------
>>> import numpy as np, hollownet
>>> X = (np.random.default_rng(0).random((200, 12)) < 0.3).astype(np.uint8)
>>> model = hollownet.VAE(latent=2, iters=20, net="linear", posterior="planar").fit(X)
>>> model.transform(X[:3]).shape, model.sample(4).shape
((3, 2), (4, 12))
"""
