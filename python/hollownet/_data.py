"""From arrays and tables of any kind to what the library takes: contiguous doubles, row by row."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np


def pointer(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


def column_names(X: Any) -> list[Any] | None:
    """The names of a table's columns (pandas, polars, pyarrow); None for arrays."""
    names = getattr(X, "column_names", None)
    if names is None:
        names = getattr(X, "columns", None)
    if names is None or callable(names):
        return None
    return list(names)


def feature_names(X: Any) -> np.ndarray | None:
    """The names as scikit-learn keeps them: all are texts, or there are none."""
    names = column_names(X)
    if not names:
        return None
    texts = [isinstance(name, str) for name in names]
    if all(texts):
        return np.asarray(names, dtype=object)
    if any(texts):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            f"Feature names are only supported if all input features have string names, but your input has {kinds} "
            "as feature name / column name types."
        )
    return None


def _table_values(X: Any) -> Any:
    if hasattr(X, "column_names") and hasattr(X, "column"):  # pyarrow
        return np.column_stack([np.asarray(X.column(i).to_numpy()) for i in range(len(X.column_names))])
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    return X


def as_array(X: Any, name: str = "X") -> np.ndarray:
    """Contiguous doubles of any shape. Values may be NaN or infinite."""
    if hasattr(X, "tocsr") or hasattr(X, "todense"):
        raise TypeError(f"{name} is a sparse matrix; dense data is required. Use {name}.toarray()")
    X = _table_values(X)
    array = np.asarray(X)
    if array.dtype.kind == "c" or (array.dtype.kind == "O" and any(isinstance(v, complex) for v in array.flat)):
        raise ValueError(f"Complex data not supported: {name} must be real")
    if array.dtype.kind in "USmM":
        raise ValueError(f"{name} must hold numbers, but its type is {array.dtype}")
    if array.dtype.kind == "V":
        raise ValueError(f"{name} must hold numbers, but it has fields {array.dtype.names}")
    return np.asarray(array, dtype=np.float64, order="C")  # keeps a single number a single number


def check_finite(array: np.ndarray, name: str) -> None:
    if not np.isfinite(array).all():
        what = "NaN" if np.isnan(array).any() else "infinity"
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise ValueError(f"{name} contains {what}, first in row {row}")


def as_rows(
    X: Any, name: str = "X", columns: int | None = None, *, finite: bool = True, empty: bool = False
) -> np.ndarray:
    """Rows of `columns` values each; a list of numbers is not taken for one row or one column."""
    array = as_array(X, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have 2 dimensions, rows and columns, but it has shape {array.shape}. Reshape your data: "
            f"{name}.reshape(-1, 1) makes one column of it, {name}.reshape(1, -1) one row"
        )
    if array.shape[1] == 0 and columns != 0:
        raise ValueError(f"0 feature(s) (shape={array.shape}) while a minimum of 1 is required: {name} has no columns")
    if array.shape[0] == 0 and not empty:
        raise ValueError(f"0 sample(s) (shape={array.shape}) while a minimum of 1 is required: {name} has no rows")
    if columns is not None and array.shape[1] != columns:
        raise ValueError(f"{name} has {array.shape[1]} columns, but {columns} are expected")
    if finite:
        check_finite(array, name)
    return array


def as_column(values: Any, rows: int, name: str) -> np.ndarray:
    """One value for each row, or one for all of them."""
    array = as_array(values, name)
    if array.ndim == 0:
        array = np.full(rows, float(array))
    if array.shape != (rows,):
        raise ValueError(f"{name} has shape {array.shape}, but {(rows,)} is expected, one value for each row")
    return array


def as_context(context: Any, rows: int, columns: int, *, finite: bool = True) -> np.ndarray | None:
    """The context of every row: rows x columns, or one row for all of them."""
    if columns == 0:
        if context is not None and np.size(as_array(context, "context")):
            raise ValueError("a context is given, but the model was made without one")
        return None
    if context is None:
        raise ValueError(f"the model needs a context of {columns} column(s); give it as context=")
    array = as_array(context, "context")
    if array.ndim == 1 and array.shape[0] == columns and rows != columns:
        array = array[None, :]
    if array.ndim == 1 and columns == 1:
        array = array[:, None]
    if array.ndim == 2 and array.shape[0] == 1 and rows != 1:
        array = np.ascontiguousarray(np.broadcast_to(array, (rows, array.shape[1])))
    if array.shape != (rows, columns):
        raise ValueError(f"context has shape {array.shape}, but {(rows, columns)} is expected")
    if finite:
        check_finite(array, "context")
    return np.ascontiguousarray(array)


def as_seed(random_state: Any) -> int:
    """A seed of 64 bits from None (0), an integer, or a generator of numpy."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state is {random_state}; it must be from 0 to 2**64 - 1")
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    raise TypeError(f"random_state must be None, an integer or a generator of numpy, but it is {random_state!r}")


def check_names(owner: str, fitted: np.ndarray | None, X: Any) -> None:
    """Compare the names of a table's columns with those that a model was fitted with, as scikit-learn does."""
    names = feature_names(X)
    if fitted is None and names is None:
        return
    if names is None:
        # A message of scikit-learn, which its users know.
        warnings.warn(
            f"X does not have valid feature names, but {owner} was fitted with feature names", UserWarning, stacklevel=4
        )
        return
    if fitted is None:
        warnings.warn(f"X has feature names, but {owner} was fitted without feature names", UserWarning, stacklevel=4)
        return
    if len(names) == len(fitted) and all(names == fitted):
        return
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen:
        message += "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in unseen[:5])
        message += "- ...\n" if len(unseen) > 5 else ""
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n" + "".join(f"- {name}\n" for name in missing[:5])
        message += "- ...\n" if len(missing) > 5 else ""
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def read_parquet(path: str | os.PathLike[str]) -> Any:
    """A Parquet file as a table, by whichever of pandas, polars and pyarrow is installed."""
    try:
        import pyarrow.parquet

        return pyarrow.parquet.read_table(os.fspath(path))
    except ImportError:
        pass
    for name in ("polars", "pandas"):
        try:
            return __import__(name).read_parquet(os.fspath(path))
        except ImportError:
            continue
    raise ImportError("reading Parquet needs pyarrow, polars or pandas; install one of them")
