"""Density models of tables, and a detector of outliers that is made of one."""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any

import numpy as np

from . import _abi as abi
from . import _categories
from ._data import (
    as_array,
    as_column,
    as_rows,
    as_seed,
    check_finite,
    check_names,
    column_names,
    feature_names,
    pointer,
)
from ._errors import DataWarning, FitWarning, SolveError, keyword_text, make_error
from ._estimator import Bar, BaseEstimator, DensityMixin, Fitted, Job, NotFittedError, OutlierMixin
from ._library import Context, Handle, Model, check_threads, lib
from ._options import constructor, document, make_settings, read_table
from ._report import Report, report_density

_CHUNK = 4096  # rows of one call of the library; between two calls Python handles Ctrl-C

_TABLE = "hl_density_fit_options"
_OPTIONS = read_table(_TABLE)


class DensityModel(Model):
    """A model of the library; :class:`Density` holds one."""

    _save, _load, _write, _read, _free = (
        "hl_density_save", "hl_density_load", "hl_density_write", "hl_density_read", "hl_density_free",
    )  # fmt: skip

    @property
    def dim(self) -> int:
        return int(lib.hl_density_dim(self._handle.value))

    @property
    def context(self) -> int:
        return int(lib.hl_density_context(self._handle.value))

    @property
    def names(self) -> list[str]:
        """The names of the columns, then of those of the context."""
        count = self.dim + self.context
        return [lib.hl_density_get_column(self._handle.value, i).name.decode() for i in range(count)]

    @property
    def categories(self) -> list[_categories.Category]:
        return _categories.of_model(self._handle.value)

    def rows_of_context(self, context: Any, rows: int) -> np.ndarray | None:
        """The context of every row as numbers."""
        return _categories.encode(context, rows, self.context, self.categories)

    @property
    def is_flow(self) -> bool:
        """Whether the model is one flow, and not a weighted sum of members."""
        return bool(lib.hl_density_flow(self._handle.value)) and self.members == 1

    @property
    def members(self) -> int:
        return int(lib.hl_density_members(self._handle.value))

    def member(self, index: int) -> Any:
        return lib.hl_density_get_member(self._handle.value, index)

    @property
    def note(self) -> str:
        return str(lib.hl_density_note(self._handle.value).decode())

    def log_prob(self, x: np.ndarray, context: np.ndarray | None) -> np.ndarray:
        out = np.empty(len(x))
        self._each_chunk(
            len(x),
            lambda first, count: lib.hl_density_logp(
                self._handle.value, count, pointer(x[first:]), _from(context, first), pointer(out[first:])
            ),
        )
        return out

    def log_prob_gradient(self, x: np.ndarray, context: np.ndarray | None) -> np.ndarray:
        out = np.empty_like(x)
        self._each_chunk(
            len(x),
            lambda first, count: lib.hl_density_logp_gradient(
                self._handle.value, count, pointer(x[first:]), _from(context, first), None, pointer(out[first:]), None
            ),
        )
        return out

    def member_log_prob(self, member: int, x: np.ndarray, context: np.ndarray | None) -> np.ndarray:
        out = np.empty(len(x))
        self._each_chunk(
            len(x),
            lambda first, count: lib.hl_density_member_logp(
                self._handle.value, member, count, pointer(x[first:]), _from(context, first), pointer(out[first:])
            ),
        )
        return out

    def sample(self, rows: int, seed: int, context: np.ndarray | None) -> np.ndarray:
        out = np.empty((rows, self.dim))
        self._each_chunk(
            rows,
            lambda first, count: lib.hl_density_sample(
                self._handle.value, seed, first, count, _from(context, first), pointer(out[first:])
            ),
        )
        return out

    def _each_chunk(self, rows: int, call: Any) -> None:
        """Rows that fail are NaN; the first reason becomes a warning."""
        for first in range(0, rows, _CHUNK):
            with self._locked() as owner:
                status = call(first, min(_CHUNK, rows - first))
                if status in (abi.HL_ERR_NOMEM, abi.HL_ERR_INVALID, abi.HL_ERR_CALLBACK, abi.HL_ERR_UNSUPPORTED):
                    owner.check(status)
                message = lib.hl_context_message(owner.handle).decode("utf-8", "replace") if status < 0 else ""
            if status < 0:
                warnings.warn(f"rows that could not be solved are NaN: {message}", RuntimeWarning, stacklevel=4)


def _from(array: np.ndarray | None, first: int) -> int | None:
    return None if array is None else array[first:].ctypes.data


# ---- what a fit tells ----

_VERDICTS = {
    abi.HL_DENSITY_GOOD: "",
    abi.HL_DENSITY_NORMAL: "a normal distribution is better, and the model is one: there are too few rows for more",
    abi.HL_DENSITY_NORMAL_BETTER: "a normal distribution is better than this model: there are too few rows for it",
    abi.HL_DENSITY_FAILED: "even the best iteration is much worse than a normal distribution",
    abi.HL_DENSITY_DIVERGED: "training diverged at its end; the model is the best one before",
    abi.HL_DENSITY_UNVALIDATED: "training ended before the first validation; the model is the last one",
}


def _finding_text(finding: Any, names: Any) -> str:
    buffer = ctypes.create_string_buffer(800)
    text = lib.hl_finding_text(ctypes.byref(finding), names, buffer, len(buffer)).decode("utf-8", "replace")
    return (f"row {finding.row}: " if finding.kind == abi.HL_FINDING_FAR else "") + keyword_text(text)


class _Fit:
    """One call of hl_density_fit."""

    def __init__(self, names: list[str], verbose: Any) -> None:
        self.names = names
        self.history: dict[str, list[float]] = {"iteration": [], "loss": [], "validation": []}
        self.bar = Bar(verbose, "hollow fit")

    def report(self, progress: Any) -> None:
        if progress.phase == abi.HL_FIT_MIXING:
            return
        if progress.validated:
            self.history["iteration"].append(progress.iteration)
            self.history["loss"].append(progress.loss)
            self.history["validation"].append(progress.validation)
        self.bar.show(progress.iteration, progress.iterations, f"best {progress.best:.4g}")

    def run(
        self, owner: Context, data: Any, settings: Handle, checkpoint: Any, resume: bool
    ) -> tuple[int, Any, Any, bool]:
        """Status, model or None, outcome or None, and whether Ctrl-C ended it."""
        job = Job(abi.hl_density_progress, self.report, checkpoint, resume)
        model, outcome = ctypes.c_void_p(), ctypes.c_void_p()
        made = None
        try:
            status = job.run(
                lambda pointer: lib.hl_density_fit(
                    owner.handle,
                    ctypes.byref(data),
                    settings.value,
                    pointer,
                    ctypes.byref(model),
                    ctypes.byref(outcome),
                )
            )
        finally:
            self.bar.close()
            if model.value:
                made = DensityModel._adopt(owner, model.value)
        ended = Handle.adopt(owner, outcome.value, lib.hl_density_outcome_free) if outcome.value else None
        return status, made, ended, job.interrupted


class _FlowMethod:
    """A method that models without a flow do not have; scikit-learn then sees none."""

    def __init__(self, function: Any) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.function
        model = getattr(instance, "_model", None)
        if not (instance.members == "flow" if model is None else model.is_flow):
            raise AttributeError(
                f"a weighted sum of members has no {self.function.__name__}; fit with members='flow', which makes the model one flow"
            )
        return self.function.__get__(instance, owner)


_PARAMETERS: dict[str, Any] = {option.keyword: None for option in _OPTIONS}
_PARAMETERS.update(threads=None, verbose=0)


class Density(DensityMixin, Fitted):
    _kind = DensityModel
    _model: DensityModel

    __init__ = constructor(_PARAMETERS)

    # ---- fitting ----

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        context: Any = None,
        X_valid: Any = None,
        context_valid: Any = None,
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Density:
        """Learn the density of the rows of X.

        Parameters
        ----------
        X : table or array
            Rows x columns: an array, or a table of pandas, polars or pyarrow.
        y : ignored
        context : table or array, optional
            Columns, for every row, that the density depends on. Columns of texts are categories.
        X_valid, context_valid : optional
            Rows for validation; default: part of X.
        sample_weight : array, optional
            A weight, not negative, for every row.
        checkpoint, resume : path, bool
            A file for the state of training; whether to continue from it.

        Ctrl-C ends training: the best model so far is kept, and KeyboardInterrupt raised. While
        mixtures are fitted there is none.
        """
        names = feature_names(X)
        x = as_rows(X)
        if len(x) < 10:
            raise ValueError(f"n_samples={len(x)}: X has {len(x)} row(s), and at least 10 are needed")
        context_names = column_names(context) if context is not None else None
        categories: list[_categories.Category] = []
        c: np.ndarray | None
        if context is not None and _categories.has_texts(context):
            c, context_names, categories = _categories.learn(context, len(x))
        else:
            c = None if context is None else _context_rows(context, len(x), "context")
        width = 0 if c is None else c.shape[1]
        data = abi.hl_density_data(dim=x.shape[1], context=width)
        data.train = abi.hl_density_rows(rows=len(x), x=pointer(x), context=pointer(c))
        keep: list[Any] = [x, c]
        if sample_weight is not None:
            weights = as_column(sample_weight, len(x), "sample_weight")
            check_finite(weights, "sample_weight")
            if weights.min() < 0 or weights.max() == 0:
                raise ValueError("sample_weight must not be negative, nor zero for all rows")
            data.train.weights = pointer(weights)
            keep.append(weights)
        if X_valid is not None:
            xv = as_rows(X_valid, "X_valid", x.shape[1])
            cv = _categories.encode(context_valid, len(xv), width, categories)
            data.valid = abi.hl_density_rows(rows=len(xv), x=pointer(xv), context=pointer(cv))
            keep += [xv, cv]
        shown = [str(n) for n in names] if names is not None else [f"x{i + 1}" for i in range(x.shape[1])]
        if width:
            shown += [str(n) for n in context_names] if context_names else [f"c{i + 1}" for i in range(width)]
        if names is not None or context_names:
            texts = (ctypes.c_char_p * len(shown))(*(n.encode() for n in shown))
            data.names = texts
            keep.append(texts)
        self._run(data, shown, checkpoint, resume)
        if categories:
            with self._model._locked() as owner:
                _categories.give(owner, self._model._handle.value, categories)
        self.n_features_in_ = x.shape[1]
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if self._interrupted:
            raise KeyboardInterrupt
        return self

    def _run(self, data: Any, names: list[str], checkpoint: Any, resume: bool) -> None:
        owner = Context(check_threads(self.threads))  # type: ignore[attr-defined]
        values = self.get_params(deep=False)  # type: ignore[attr-defined]
        if values.get("random_state") is not None:
            values["random_state"] = as_seed(values["random_state"]) % 2**53
        settings = make_settings(owner, _TABLE, _OPTIONS, values)
        fit = _Fit(names, values.get("verbose"))
        status, model, ended, self._interrupted = fit.run(owner, data, settings, checkpoint, resume)
        message = lib.hl_context_message(owner.handle).decode("utf-8", "replace")
        outcome = abi.hl_density_outcome.from_address(ended.value) if ended is not None else None
        self.findings_ = self._findings(outcome, names)
        if model is None:
            if self._interrupted:
                raise KeyboardInterrupt
            raise make_error(status, message)
        self._model = model
        self.history_ = fit.history
        if outcome is not None:
            self.n_iter_ = int(outcome.iteration)
            self.best_iteration_ = int(outcome.best_iteration)
            self.validation_loss_ = float(outcome.best)
            if _VERDICTS.get(outcome.verdict) and not self._interrupted:
                warnings.warn(_VERDICTS[outcome.verdict], FitWarning, stacklevel=3)
        if status < 0:
            raise SolveError(f"{message}; the model is the best one before")

    @staticmethod
    def _findings(outcome: Any, names: list[str]) -> list[str]:
        if outcome is None or not outcome.findings:
            return []
        rows = (abi.hl_finding * outcome.findings).from_address(outcome.finding)
        array = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
        texts = [_finding_text(row, array) for row in rows]
        for row, text in zip(rows, texts):
            if row.kind not in (abi.HL_FINDING_CONSTANT, abi.HL_FINDING_SCALE):  # these are errors
                warnings.warn(text, DataWarning, stacklevel=4)
        return texts

    # ---- using it ----

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()  # type: ignore[misc]
        if hasattr(self, "transform"):
            tags.transformer_tags = TransformerTags(preserves_dtype=["float64"])
        return tags

    def _rows(self, X: Any) -> np.ndarray:
        model = self._fitted()
        if hasattr(self, "columns_"):  # of a file: names that are given must be these
            names = feature_names(X)
            if names is not None:
                check_names(type(self).__name__, np.asarray(self.columns_[: model.dim], dtype=object), X)
        else:
            check_names(type(self).__name__, getattr(self, "feature_names_in_", None), X)
        x = as_rows(X)
        if x.shape[1] != model.dim:
            raise ValueError(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting {model.dim} features as input"
            )
        return x

    def score_samples(self, X: Any, context: Any = None) -> np.ndarray:
        """The log-density of every row, in nats and in the units of the data: exact, and the same number every time."""
        x = self._rows(X)
        model = self._fitted()
        return model.log_prob(x, model.rows_of_context(context, len(x)))

    def score_gradient(self, X: Any, context: Any = None) -> np.ndarray:
        """The gradient of the log-density of every row by the row: rows x columns, exact, in the units of the data."""
        x = self._rows(X)
        model = self._fitted()
        return model.log_prob_gradient(x, model.rows_of_context(context, len(x)))

    def responsibilities(self, X: Any, context: Any = None) -> np.ndarray:
        """The share of every member in the density of every row: rows x members, with row sums of 1.

        `members_` tells what the members are.
        """
        x = self._rows(X)
        model = self._fitted()
        c = model.rows_of_context(context, len(x))
        logp = [model.member_log_prob(k, x, c) + np.log(model.member(k).weight) for k in range(model.members)]
        shares = np.exp(np.array(logp) - np.max(logp, axis=0))
        return (shares / shares.sum(axis=0)).T

    @property
    def members_(self) -> list[dict[str, Any]]:
        """The members of the model: kind, weight, and of mixtures the parts and degrees of freedom (0: normal)."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("the model is not fitted yet")
        model = self._fitted()
        kinds = {abi.HL_MEMBER_FLOW: "flow", abi.HL_MEMBER_MIXTURE: "mixture"}
        members = [model.member(k) for k in range(model.members)]
        return [
            {"kind": kinds[m.kind], "weight": m.weight, "mapped": bool(m.mapped), "parts": m.parts, "nu": m.nu}
            for m in members
        ]

    def score(self, X: Any, y: Any = None, context: Any = None) -> float:
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X, context)))

    def report(
        self,
        X: Any,
        context: Any = None,
        *,
        rows: int = 4000,
        draws: int = 2000,
        random_state: Any = 0,
        title: str = "Density model",
    ) -> Report:
        """Compare the model with rows that it was not trained on: a verdict, numbers, and a page that shows them.

        At most `rows` rows of X are evaluated, and as many as `draws` drawn from the model.
        """
        x = self._rows(X)
        model = self._fitted()
        return report_density(model, x, model.rows_of_context(context, len(x)), rows, draws, random_state, title)

    def sample(self, n_samples: int = 1, random_state: Any = None, context: Any = None) -> np.ndarray:
        """Rows from the model. More samples of a seed begin with the same ones.

        With a context: one row of it for all samples, or one for each.
        """
        model = self._fitted()
        if isinstance(n_samples, bool) or int(n_samples) != n_samples or n_samples < 1:
            raise ValueError(f"n_samples is {n_samples!r}; it must be an integer of at least 1")
        rows = int(n_samples)
        return model.sample(rows, as_seed(random_state), model.rows_of_context(context, rows))

    @_FlowMethod
    def transform(self, X: Any, context: Any = None) -> np.ndarray:
        """From the rows to the base of the flow, where the model is a normal distribution with independent columns."""
        x = self._rows(X).copy()
        model = self._fitted()
        c = model.rows_of_context(context, len(x))
        return self._through_flow(x, c, lib.hl_flow_forward)

    @_FlowMethod
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """fit(X), then transform(X)."""
        return self.fit(X, y, **fit_params).transform(X, fit_params.get("context"))

    @_FlowMethod
    def inverse_transform(self, Z: Any, context: Any = None) -> np.ndarray:
        """From the base of the flow to rows: the inverse of transform, to the tolerance of the solver."""
        model = self._fitted()
        z = as_rows(Z, "Z", model.dim)
        c = model.rows_of_context(context, len(z))
        return self._through_flow(z, c, lib.hl_flow_inverse)

    def _through_flow(self, x: np.ndarray, context: np.ndarray | None, call: Any) -> np.ndarray:
        model = self._fitted()
        out = np.empty_like(x)
        c = None if context is None else context.copy()
        with model._locked() as owner:
            handle = model._handle.value
            forward = call is lib.hl_flow_forward
            lib.hl_density_standardise(handle, len(x), pointer(x) if forward else None, pointer(c))
            flow = lib.hl_density_flow(handle)
            owner.check(call(flow, len(x), pointer(x), pointer(c), pointer(out), None))
            if not forward:
                lib.hl_density_unstandardise(handle, len(out), pointer(out))
        return out

    @classmethod
    def _of(cls, model: DensityModel) -> Any:
        self = super()._of(model)
        self.columns_ = model.names
        return self


_PARAMETER_DOC = (
    document(_OPTIONS)
    + "\nthreads : int, optional\n    Threads; changes no bit of any result. Default: all cores.\n"
    + "verbose : int, optional\n    Nonzero: show progress. Default: 0.\n"
)

Density.__doc__ = f"""The density of a table's rows, with exact log-likelihoods.

Everything that is not given is chosen from the data, as `hollow fit` does.

Parameters
----------
{_PARAMETER_DOC}
Attributes
----------
history_ : dict
    iteration, loss and validation (mean -log p) of every validation.
validation_loss_ : float
    The best of these.
n_iter_, best_iteration_ : int
    Iterations done; that of the model.
findings_ : list of str
    What was found in the data.
n_features_in_, feature_names_in_ : int, array
    The columns.

Examples
--------
>>> import numpy as np, hollownet
>>> X = np.random.default_rng(0).normal(size=(300, 2))
>>> model = hollownet.Density(iters=20, random_state=0).fit(X)
>>> model.score_samples(X[:3]).shape
(3,)
>>> model.sample(5, random_state=1).shape
(5, 2)
"""


class OutlierDetector(OutlierMixin, BaseEstimator):
    _kind = DensityModel
    _model: DensityModel
    offset_: float

    __init__ = constructor({"contamination": 0.1, **_PARAMETERS})

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> OutlierDetector:
        """Learn the density of the rows, and the log-density below which a row is an outlier."""
        share = self.contamination  # type: ignore[attr-defined]
        if not 0 < share <= 0.5:
            raise ValueError(f"contamination is {share!r}; it must be above 0 and at most 0.5")
        values = self.get_params(deep=False)  # type: ignore[attr-defined]
        values.pop("contamination")
        density = Density(**values)
        self.density_ = density
        try:
            density.fit(X, sample_weight=sample_weight)
        finally:
            if density.__sklearn_is_fitted__():
                self._take(X, share)
        return self

    def _take(self, X: Any, share: float) -> None:
        density = self.density_
        self.n_features_in_ = density.n_features_in_
        if hasattr(density, "feature_names_in_"):
            self.feature_names_in_ = density.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.offset_ = float(np.percentile(density._fitted().log_prob(as_rows(X), None), 100 * share))

    def _scores(self, X: Any) -> np.ndarray:
        if not hasattr(self, "offset_"):
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using "
                "this estimator."
            )
        check_names(type(self).__name__, getattr(self, "feature_names_in_", None), X)
        x = as_rows(X)
        if x.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            )
        return self.density_._fitted().log_prob(x, None)

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density of every row."""
        return self._scores(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-density above that of the border: negative for outliers."""
        return self._scores(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """-1 for outliers, 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)


OutlierDetector.__doc__ = f"""Rows of low density: outliers.

Parameters
----------
contamination : float, optional
    The share of the rows of training that are taken for outliers. Default: 0.1.
{_PARAMETER_DOC}
Attributes
----------
density_ : Density
    The model of the density.
offset_ : float
    The log-density of the border.

Examples
--------
>>> import numpy as np, hollownet
>>> X = np.random.default_rng(0).normal(size=(300, 2))
>>> detector = hollownet.OutlierDetector(iters=20, random_state=0).fit(X)
>>> detector.predict([[0.0, 0.0], [9.0, 9.0]])
array([ 1, -1])
"""


def _context_rows(context: Any, rows: int, name: str) -> np.ndarray:
    array = as_array(context, name)
    array = as_rows(array[:, None] if array.ndim == 1 else array, name)
    if len(array) != rows:
        raise ValueError(f"{name} has {len(array)} rows, but X has {rows}")
    return array
