"""Stochastic differential equations dx = f dt + g dW, learned from observations."""

from __future__ import annotations

import ctypes
import math
import os
import warnings
from typing import Any, NamedTuple

import numpy as np

from . import _abi as abi
from ._data import as_column, as_rows, as_seed, column_names, pointer
from ._errors import DataWarning, FitWarning, keyword_text, make_error
from ._estimator import Bar, Fitted, Job
from ._library import Context, Handle, Model, check_threads, lib
from ._options import constructor, document, make_settings, read_table
from ._report import Report, report_sde

_CHUNK = 4096
_FINE = 512  # steps of a simulation by default, at least, as in `hollow sde sample`

_TABLE = "hl_sde_learn_options"
_OPTIONS = read_table(_TABLE, {"drift": "drift_form", "diffusion": "diffusion_form"})


class SDEModel(Model):
    """A model of the library; :class:`SDE` holds one."""

    _save, _load, _write, _read, _free = "hl_sde_save", "hl_sde_load", "hl_sde_write", "hl_sde_read", "hl_sde_free"

    @property
    def dim(self) -> int:
        return int(lib.hl_sde_describe(self._handle.value).dim)

    @property
    def names(self) -> list[str]:
        """The names of the columns, then that of time."""
        return [lib.hl_sde_name(self._handle.value, i).decode() for i in range(self.dim + 1)]

    @property
    def note(self) -> str:
        return str(lib.hl_sde_note(self._handle.value).decode())

    @property
    def times(self) -> tuple[float, float]:
        """The first and the last time of the data."""
        first, last = ctypes.c_double(), ctypes.c_double()
        lib.hl_sde_get_scale(self._handle.value, ctypes.byref(first), ctypes.byref(last), None, None)
        return first.value, last.value

    def evaluate(self, t: np.ndarray, x: np.ndarray, name: str, wide: bool) -> np.ndarray:
        out = np.empty(x.shape if wide else len(x))
        for first in range(0, len(x), _CHUNK):
            values = abi.hl_sde_values(**{name: pointer(out[first:])})
            count = min(_CHUNK, len(x) - first)
            with self._locked() as owner:
                status = lib.hl_sde_eval(
                    self._handle.value, count, pointer(t[first:]), pointer(x[first:]), ctypes.byref(values)
                )
                owner.check(status)
        return out


class Bands(NamedTuple):
    """Pointwise bands of 90 %, rows x columns, and where there are observations near, by rows."""

    drift_low: np.ndarray
    drift_high: np.ndarray
    diffusion_low: np.ndarray
    diffusion_high: np.ndarray
    inside: np.ndarray


class _Fit:
    def __init__(self, verbose: Any) -> None:
        self.history: dict[str, list[float]] = {"iteration": [], "loss": [], "nll": []}
        self.bar = Bar(verbose, "hollow sde fit")

    def report(self, progress: Any) -> None:
        if progress.phase != abi.HL_SDE_PHASE_TRAINING:
            return
        every = max(progress.iterations // 200, 1)
        if progress.iteration and (progress.iteration % every == 0 or progress.iteration == progress.iterations):
            self.history["iteration"].append(progress.iteration)
            self.history["loss"].append(progress.loss)
            self.history["nll"].append(progress.nll)
        self.bar.show(progress.iteration, progress.iterations, f"loss {progress.loss:.4g}")


class SDE(Fitted):
    _kind = SDEModel
    _model: SDEModel

    __init__ = constructor({**{option.keyword: None for option in _OPTIONS}, "threads": 1, "verbose": 0})

    # ---- fitting ----

    def fit(
        self,
        t: Any,
        X: Any,
        groups: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> SDE:
        """Learn drift and diffusion from observations.

        Parameters
        ----------
        t : array
            The time of every observation.
        X : table or array
            Observations x columns.
        groups : array, optional
            What trajectory every observation belongs to: any values, equal for one trajectory. Without it, rows whose times
            rise are one trajectory, and other rows are snapshots that do not belong together.
        checkpoint, resume : path, bool
            A file for the state of training; whether to continue from it.

        Ctrl-C ends training: the present model is kept, and KeyboardInterrupt raised.
        """
        names = column_names(X)
        x = as_rows(X)
        times = as_column(t, len(x), "t")
        data = abi.hl_sde_observations(rows=len(x), dim=x.shape[1], t=pointer(times), x=pointer(x))
        keep: list[Any] = [x, times]
        if groups is not None:
            labels = np.asarray(groups)
            if labels.shape != (len(x),):
                raise ValueError(
                    f"groups has shape {labels.shape}, but {(len(x),)} is expected, one value for each row"
                )
            _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
            order = np.argsort(np.argsort(first))  # in the order in which they come
            trajectory = np.ascontiguousarray(order[numbers.reshape(-1)], dtype=np.uintp)
            data.trajectory = pointer(trajectory)
            keep.append(trajectory)
        if names is not None and all(isinstance(name, str) for name in names):
            clock = getattr(t, "name", None)
            texts = [*names, clock if isinstance(clock, str) else "t"]
            array = (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
            data.names = array
            keep.append(array)
        self._run(data, checkpoint, resume)
        return self

    def _run(self, data: Any, checkpoint: Any, resume: bool) -> None:
        owner = Context(check_threads(self.threads))  # type: ignore[attr-defined]
        values = self.get_params(deep=False)  # type: ignore[attr-defined]
        if values.get("random_state") is not None:
            values["random_state"] = as_seed(values["random_state"]) % 2**53
        settings = make_settings(owner, _TABLE, _OPTIONS, values)
        fit = _Fit(values.get("verbose"))
        job = Job(abi.hl_sde_progress, fit.report, checkpoint, resume)
        sde, outcome = ctypes.c_void_p(), ctypes.c_void_p()
        model = ended = None
        try:
            status = job.run(
                lambda pointer: lib.hl_sde_learn(
                    owner.handle, ctypes.byref(data), settings.value, pointer, ctypes.byref(sde), ctypes.byref(outcome)
                )
            )
        finally:
            fit.bar.close()
            if sde.value:
                model = SDEModel._adopt(owner, sde.value)
            if outcome.value:
                ended = Handle.adopt(owner, outcome.value, lib.hl_sde_outcome_free)
        message = lib.hl_context_message(owner.handle).decode("utf-8", "replace")
        self._tell(ended, model)
        if model is not None:
            self._model, self.history_ = model, fit.history
            self.n_features_in_ = model.dim
        if job.interrupted:
            raise KeyboardInterrupt
        if status < 0:
            raise make_error(status, message)

    def _tell(self, ended: Handle | None, model: SDEModel | None) -> None:
        """Findings as warnings, and the outcome as attributes."""
        self.findings_: list[str] = []
        if ended is None:
            return
        outcome = abi.hl_sde_outcome.from_address(ended.value or 0)
        buffer = ctypes.create_string_buffer(900)
        for i in range(outcome.findings):
            finding = (abi.hl_sde_finding * outcome.findings).from_address(outcome.finding)[i]
            text = keyword_text(lib.hl_sde_finding_text(ended.value, i, buffer, len(buffer)).decode("utf-8", "replace"))
            self.findings_.append(text)
            if model is not None:
                warnings.warn(text, FitWarning if finding.fatal else DataWarning, stacklevel=4)
        self.n_iter_ = int(outcome.iterations)
        self.verdict_ = _verdict(outcome.verdict) if outcome.judged else None

    # ---- using it ----

    def _evaluate(self, name: str, X: Any, t: Any, wide: bool) -> np.ndarray:
        model = self._fitted()
        x = as_rows(X, "X", model.dim)
        times = as_column(model.times[0] if t is None else t, len(x), "t")
        return model.evaluate(times, x, name, wide)

    def drift(self, X: Any, t: Any = None) -> np.ndarray:
        """f(t, x) of every row; t is one time, or one for every row. Default: the first time of the data."""
        return self._evaluate("f", X, t, True)

    def diffusion(self, X: Any, t: Any = None) -> np.ndarray:
        """g(t, x) of every row."""
        return self._evaluate("g", X, t, True)

    def confidence_bands(self, X: Any, t: Any = None) -> Bands:
        """How well the data determine drift and diffusion at every row: bands of 90 % from resampled data.

        They tell the noise of the estimate, not its bias; those of networks are from simulated data and tell a part of the bias, too.
        A model that was fitted with bands=0, the default of networks, has none.
        """
        model = self._fitted()
        x = as_rows(X, "X", model.dim)
        times = as_column(model.times[0] if t is None else t, len(x), "t")
        values = [np.empty_like(x) for _ in range(4)]
        inside = np.empty(len(x), dtype=np.intc)
        wanted = abi.hl_sde_band_values(*(pointer(v) for v in values), pointer(inside))
        with model._locked() as owner:
            owner.check(lib.hl_sde_bands(model._handle.value, len(x), pointer(times), pointer(x), ctypes.byref(wanted)))
        return Bands(values[0], values[1], values[2], values[3], inside != 0)

    def log_prob(self, X: Any, t: Any = None) -> np.ndarray:
        """log p(t, x) of every row, of the model's density."""
        return self._evaluate("logp", X, t, False)

    def score_gradient(self, X: Any, t: Any = None) -> np.ndarray:
        """The gradient of log p(t, x) by x."""
        return self._evaluate("score", X, t, True)

    def residual(self, X: Any, t: Any = None) -> np.ndarray:
        """The residual R of the Fokker-Planck equation, which is 0 where density, drift and diffusion agree."""
        return self._evaluate("residual", X, t, False)

    def sample(self, t: Any, random_state: Any = None) -> np.ndarray:
        """A draw from the density p(t, .) for every time."""
        model = self._fitted()
        times = np.atleast_1d(np.ascontiguousarray(t, dtype=np.float64))
        out = np.empty((len(times), model.dim))
        with model._locked() as owner:
            owner.check(
                lib.hl_sde_sample(
                    model._handle.value, len(times), pointer(times), as_seed(random_state), 0, pointer(out)
                )
            )
        return out

    def simulate(
        self,
        n_paths: int | None = None,
        *,
        t0: float | None = None,
        t1: float | None = None,
        steps: int = 50,
        start: Any = None,
        method: str = "srk",
        level: int | None = None,
        random_state: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Trajectories of the equation.

        Parameters
        ----------
        n_paths : int
            How many; default 100, or the rows of `start`.
        t0, t1, steps : float, float, int
            Where they begin and end (default: the times of the data), and in how many equal intervals they are returned.
        start : array
            Rows to start from; default: draws from the density at t0.
        method : str
            "srk" (default), "euler", "milstein", "heun", "sra".
        level : int
            2**level steps of the method in an interval; default: 512 or more steps in all.
        random_state : int
            More paths of a seed begin with the same ones, and a finer level follows the same Brownian paths.

        Returns
        -------
        t : array of steps + 1 times
        x : array, paths x (steps + 1) x columns. A path that leaves the region of the data and does not stay finite is NaN
            from there on, with a RuntimeWarning.
        """
        model = self._fitted()
        first, last = model.times
        begin, end = first if t0 is None else float(t0), last if t1 is None else float(t1)
        if not end > begin or not math.isfinite(end - begin) or steps < 1:
            raise ValueError(f"the start, {begin}, must come before the end, {end}, and steps, {steps}, be at least 1")
        times = begin + (end - begin) / steps * np.arange(steps + 1)
        seed = as_seed(random_state)
        rows = None if start is None else as_rows(start, "start", model.dim)
        count = int(n_paths) if n_paths is not None else 100 if rows is None else len(rows)
        if level is None:
            level = next(k for k in range(64) if steps << k >= _FINE)
        with model._locked() as owner:
            x = np.empty((count, model.dim))
            clock = np.full(count, begin)
            if rows is None:
                owner.check(lib.hl_sde_sample(model._handle.value, count, pointer(clock), seed, 0, pointer(x)))
            else:
                x[...] = rows[np.arange(count) % len(rows)]
            saved = np.empty((count, steps + 1, model.dim))
            system = abi.hl_noise_system()
            owner.check(lib.hl_sde_system(model._handle.value, ctypes.byref(system)))
            options = abi.hl_simulator_options(method=method.encode(), seed=seed, level=level, escapes=1)
            simulator = Handle(
                owner,
                lib.hl_simulator_create,
                lib.hl_simulator_free,
                owner.handle,
                ctypes.byref(system),
                ctypes.byref(options),
            )
            interval = (times[-1] - times[0]) / steps
            run = lib.hl_simulator_run
            owner.check(run(simulator.value, count, 0, pointer(clock), interval, steps, pointer(x), pointer(saved)))
        escaped = int(np.isnan(saved[:, -1, 0]).sum())
        if escaped:
            warnings.warn(
                f"{escaped} of {count} paths leave the region of the data and do not stay finite",
                RuntimeWarning,
                stacklevel=2,
            )
        return times, saved

    def bridge(
        self,
        t: Any,
        X: Any,
        n_paths: int = 100,
        *,
        steps: int = 50,
        level: int | None = None,
        candidates: int = 0,
        random_state: Any = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Trajectories of the equation through given states.

        Parameters
        ----------
        t, X : arrays of at least two rising times, and of the states there
        n_paths, steps : int
            How many paths, and in how many equal intervals each gap between neighbouring states is returned.
        level : int
            2**level Euler steps in an interval; default: 128 or more steps in a gap.
        candidates : int
            Paths that are proposed; default 4 for each path, at least 400.

        Returns
        -------
        t : array of gaps * steps + 1 times
        x : array, paths x times x columns
        effective : array, for each gap the effective share of the proposed paths; near 0: more candidates are needed
        """
        model = self._fitted()
        states = as_rows(X, "X", model.dim)
        times = as_column(t, len(states), "t")
        gaps = len(states) - 1
        if gaps < 1 or steps < 1 or n_paths < 1:
            raise ValueError("at least two states, one step and one path are needed")
        out = np.empty((n_paths, gaps * steps + 1, model.dim))
        share = np.empty(gaps)
        options = abi.hl_bridge_options(
            steps=steps, level=0 if level is None else level or -1, candidates=candidates, seed=as_seed(random_state)
        )
        with model._locked() as owner:
            owner.check(
                lib.hl_sde_bridge(
                    model._handle.value,
                    len(states),
                    pointer(times),
                    pointer(states),
                    n_paths,
                    ctypes.byref(options),
                    pointer(out),
                    pointer(share),
                )
            )
        grid = [times[k] + (times[k + 1] - times[k]) / steps * np.arange(steps) for k in range(gaps)]
        return np.concatenate([*grid, times[-1:]]), out, share

    def _observations(self, t: Any, X: Any, groups: Any) -> tuple[Any, list[Any]]:
        """The library's struct, and the arrays that it points to."""
        x = as_rows(X, "X", self._fitted().dim)
        times = as_column(t, len(x), "t")
        if groups is None:
            return abi.hl_sde_data(rows=len(x), t=pointer(times), x=pointer(x)), [x, times]
        _, numbers = np.unique(np.asarray(groups), return_inverse=True)
        order = np.lexsort((times, numbers))
        x, times = np.ascontiguousarray(x[order]), np.ascontiguousarray(times[order])
        trajectory = np.ascontiguousarray(numbers[order], dtype=np.uintp)
        data = abi.hl_sde_data(rows=len(x), t=pointer(times), x=pointer(x), trajectory=pointer(trajectory))
        return data, [x, times, trajectory]

    def report(
        self, t: Any, X: Any, groups: Any = None, *, random_state: Any = 0, title: str = "Stochastic equation"
    ) -> Report:
        """Compare the model with observations: a verdict, numbers, and a page that shows them.

        `groups` says which observations belong to one trajectory; with it, drift and diffusion are compared with
        the steps.
        """
        data, _keep = self._observations(t, X, groups)
        return report_sde(self._fitted(), data, random_state, title)

    def judge(self, t: Any, X: Any, groups: Any = None, *, random_state: Any = None) -> dict[str, Any]:
        """Compare the model with observations, time by time, and say how far it can be trusted.

        Returns the verdict as a dict, with a list `groups` of the stretches of time.
        """
        model = self._fitted()
        data, _keep = self._observations(t, X, groups)
        options = abi.hl_judge_options(seed=as_seed(random_state))
        with model._locked() as owner:
            arguments = (owner.handle, model.dim, ctypes.byref(data), ctypes.byref(options))
            judge = Handle(owner, lib.hl_judge_create, lib.hl_judge_free, *arguments, keep=model._handle)
            owner.check(lib.hl_judge_model(judge.value, model._handle.value))
            result = _verdict(lib.hl_judge_verdict(judge.value))
            result["groups"] = [
                _group(lib.hl_judge_get(judge.value, i)) for i in range(lib.hl_judge_groups(judge.value))
            ]
        return result


def _verdict(verdict: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"verdict": lib.hl_answer_name(verdict.answer).decode()}
    result["reasons"] = [
        name.removeprefix("HL_REASON_").lower().replace("_", " ")
        for name, bit in vars(abi).items()
        if name.startswith("HL_REASON_") and verdict.reasons & bit
    ]
    apart = ("answer", "reasons", "regression", "test", "means_band", "means_test")
    others = [field[0] for field in abi.hl_verdict._fields_ if field[0] not in apart]
    result.update({name: getattr(verdict, name) for name in others})
    result["regression"] = list(verdict.regression)
    result["means_band"] = list(verdict.means_band)
    named = [(lib.hl_residual_name(k), t) for k, t in enumerate(verdict.test) if verdict.steps]
    named += [(lib.hl_weak_test_name(k), t) for k, t in enumerate(verdict.means_test) if verdict.means]
    result["tests"] = {
        name.decode(): {"effect": t.effect, "sigma": t.sigma, "failed": bool(t.failed)} for name, t in named
    }
    return result


def _group(group: Any) -> dict[str, Any]:
    numbers = (ctypes.c_double, ctypes.c_size_t)
    return {field[0]: getattr(group, field[0]) for field in abi.hl_judge_group._fields_ if field[1] in numbers}


SDE.__doc__ = f"""A stochastic equation dx_i = f_i(t, x) dt + g_i(t, x) dW_i, learned from observations.

Everything that is not given is chosen from the data, as `hollow sde fit` does.

Parameters
----------
{document(_OPTIONS)}
threads : int, optional
    Threads; changes no bit of any result. Default: 1.
verbose : int, optional
    Nonzero: show progress. Default: 0.

Attributes
----------
history_ : dict
    iteration, loss and nll (mean -log p) of training.
verdict_ : dict or None
    How far the model can be trusted, by a comparison with the data.
findings_ : list of str
    What was found in the data and in the model.
"""
