"""What the estimators share: scikit-learn's conventions, with scikit-learn or without it, and long jobs."""

from __future__ import annotations

import ctypes
import html
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _abi as abi
from ._library import Model, encode_path

if TYPE_CHECKING:
    HAVE_SKLEARN = False

    class BaseEstimator: ...

    class DensityMixin: ...

    class OutlierMixin: ...

    class NotFittedError(ValueError, AttributeError): ...

else:
    try:
        from sklearn.base import BaseEstimator, DensityMixin, OutlierMixin
        from sklearn.exceptions import NotFittedError

        HAVE_SKLEARN = True
    except ImportError:
        HAVE_SKLEARN = False

        class NotFittedError(ValueError, AttributeError):
            """The model was not fitted yet."""

        class BaseEstimator:
            """The part of scikit-learn's conventions that does not need scikit-learn."""

            @classmethod
            def _get_param_names(cls):
                return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

            def get_params(self, deep=True):
                """The parameters by name."""
                return {name: getattr(self, name) for name in self._get_param_names()}

            def set_params(self, **params):
                """Set parameters by name."""
                names = self._get_param_names()
                for name, value in params.items():
                    if name not in names:
                        raise ValueError(
                            f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {names!r}."
                        )
                    setattr(self, name, value)
                return self

            def __repr__(self):
                given = {name: value for name, value in self.get_params().items() if value is not None}
                return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

            def _repr_html_(self):
                return f"<pre>{html.escape(repr(self))}</pre>"

        class DensityMixin:
            """Marks a density."""

        class OutlierMixin:
            """Marks a detector of outliers."""

            def fit_predict(self, X, y=None):
                """Fit, and label the same rows."""
                return self.fit(X).predict(X)


class Fitted(BaseEstimator):
    """An estimator that holds a model of the library once it is fitted, and its files."""

    _kind: type[Model]  # of the model
    _model: Any
    n_features_in_: int

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_model", None) is not None

    def _fitted(self) -> Any:
        if getattr(self, "_model", None) is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using "
                "this estimator."
            )
        return self._model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model's file, which the program `hollow` reads, too."""
        self._fitted().save(path)

    def to_bytes(self) -> bytes:
        """The bytes of the model's file."""
        content: bytes = self._fitted().to_bytes()
        return content

    @classmethod
    def _of(cls, model: Any) -> Any:
        self = cls()
        self._model = model
        self.n_features_in_ = model.dim
        return self

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> Any:
        """A model from a file of `save` or of the program `hollow`."""
        return cls._of(cls._kind.load(path, threads=threads))

    @classmethod
    def from_bytes(cls, content: bytes, *, threads: int | None = None) -> Any:
        """A model from the bytes of its file."""
        return cls._of(cls._kind.from_bytes(content, threads=threads))


class Job:
    """Run a long call of the library with reports, a progress bar, and a Ctrl-C that ends it with a result.

    Python handles signals between bytecodes, so in the callback; the handler only takes a note, and `interrupted` tells.
    """

    def __init__(
        self, report: Any, on_report: Callable[[Any], None], checkpoint: Any = None, resume: bool = False
    ) -> None:
        if resume and checkpoint is None:
            raise ValueError("resume needs the path of a checkpoint")
        self.interrupted = False
        self._error: BaseException | None = None
        self._report, self._on_report = report, on_report
        self._callback = abi.hl_progress_fn(self._progress)
        self.job = abi.hl_job(progress=self._callback, resume=int(resume))
        if checkpoint is not None:
            self.job.checkpoint = encode_path(checkpoint)

    def _progress(self, pointer: int, user: Any) -> int:
        try:
            self._on_report(self._report.from_address(pointer))
        except BaseException as error:
            self._error = error
        return int(self.interrupted or self._error is not None)

    def _note(self, number: int, frame: Any) -> None:
        self.interrupted = True

    def run(self, call: Callable[[Any], int]) -> int:
        """Call with a pointer to the job. An exception of the callback's is raised again here."""
        main = threading.current_thread() is threading.main_thread()
        guard = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if guard:
            signal.signal(signal.SIGINT, self._note)
        try:
            status = call(ctypes.byref(self.job))
        finally:
            if guard:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if isinstance(self._error, KeyboardInterrupt):
            self.interrupted = True
        elif self._error is not None:
            raise self._error
        return status


class Bar:
    """Progress on the terminal: tqdm if it is installed, else a line now and then."""

    def __init__(self, verbose: Any, title: str) -> None:
        self._verbose, self._title, self._shown = bool(verbose), title, 0
        self._make: Any = None
        self._bar: Any = None
        if self._verbose:
            try:
                from tqdm.auto import tqdm

                self._make = tqdm
            except ImportError:
                pass

    def show(self, done: int, total: int, text: str) -> None:
        if not self._verbose:
            return
        if self._make is not None:
            if self._bar is None:
                self._bar = self._make(total=total, desc=self._title)
            self._bar.total = total
            self._bar.update(done - self._bar.n)
            self._bar.set_postfix_str(text, refresh=False)
        elif done >= self._shown + max(total // 10, 1) or done == total:
            self._shown = done
            print(f"{self._title}: {done}/{total} {text}", file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
