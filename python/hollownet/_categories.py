"""Texts in the context: a column of them becomes columns of 0 and 1, one for each category but the first."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _abi as abi
from ._data import as_context, as_rows, column_names
from ._library import lib

_MOST = 64  # categories of a column


@dataclass
class Category:
    """A column of texts: its name, its first column of 0 and 1, and its sorted labels, of which labels[0] has none."""

    name: str
    column: int
    labels: list[str]


def _columns(context: Any) -> tuple[list[np.ndarray], list[str] | None]:
    names = column_names(context)
    shown = None if names is None else [str(n) for n in names]
    if names is not None and hasattr(context, "column_names"):  # pyarrow, whose columns have types of their own
        return [np.asarray(context.column(i).to_pylist(), dtype=object) for i in range(len(names))], shown
    values = context.to_numpy() if hasattr(context, "to_numpy") else context
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if array.ndim == 0:
        array = array[None]
    if array.ndim == 1:
        array = array[:, None]
    return [array[:, i] for i in range(array.shape[1])], shown


def _is_text(column: np.ndarray) -> bool:
    return column.dtype.kind in "US" or (column.dtype.kind == "O" and any(isinstance(v, str) for v in column))


def has_texts(context: Any) -> bool:
    if isinstance(context, np.ndarray) and context.dtype.kind not in "OUS":
        return False
    if hasattr(context, "tocsr"):
        return False
    if column_names(context) is None and np.ndim(context) > 2:
        return False
    return any(_is_text(column) for column in _columns(context)[0])


def _check_missing(column: np.ndarray, name: str) -> None:
    for row, value in enumerate(column):
        if not isinstance(value, str) or not value:
            raise ValueError(
                f"context row {row}, column '{name}': {value!r} is missing or no text, where others are texts"
            )


def learn(context: Any, rows: int) -> tuple[np.ndarray, list[str], list[Category]]:
    """Numbers of the context, the names of their columns, and the categories of its columns of texts."""
    columns, names = _columns(context)
    names = names or [f"c{i + 1}" for i in range(len(columns))]
    parts: list[np.ndarray] = []
    shown: list[str] = []
    categories: list[Category] = []
    for column, name in zip(columns, names):
        if len(column) != rows:
            raise ValueError(f"context has {len(column)} rows, but X has {rows}")
        if not _is_text(column):
            parts.append(as_rows(column.astype(float)[:, None], f"context column '{name}'")[:, 0])
            shown.append(name)
            continue
        _check_missing(column, name)
        labels = sorted(set(map(str, column)), key=lambda s: s.encode())
        if not 2 <= len(labels) <= _MOST:
            raise ValueError(
                f"context column '{name}' has {len(labels)} different texts; categories are from 2 to {_MOST}"
            )
        categories.append(Category(name, len(shown), labels))
        parts += [np.asarray(column == label, dtype=float) for label in labels[1:]]
        shown += [f"{name}={label}" for label in labels[1:]]
    return np.ascontiguousarray(np.stack(parts, 1)), shown, categories


def encode(context: Any, rows: int, width: int, categories: list[Category]) -> np.ndarray | None:
    """The context of every row as the model has it: as_context for models with categories."""
    if not categories or context is None:
        return as_context(context, rows, width)
    array = isinstance(context, np.ndarray) and context.dtype.kind == "f"
    if array and context.ndim == 2 and context.shape[1] == width:
        return as_context(context, rows, width)  # encoded already
    columns, names = _columns(context)
    total = width - sum(len(c.labels) - 2 for c in categories)
    if names is None and len(columns) == 1 and total > 1 and len(columns[0]) == total:
        columns = [np.asarray([v], dtype=object) for v in columns[0]]  # one row
    if len(columns) != total:
        raise ValueError(f"context has {len(columns)} columns, but {total} are expected")
    first = {c.column: c for c in categories}
    parts: list[np.ndarray] = []
    for column in columns:
        category = first.get(len(parts))
        if category is None:
            parts.append(column.astype(float))
            continue
        for row, value in enumerate(column):
            if str(value) not in category.labels:
                known = ", ".join(category.labels)
                raise ValueError(
                    f"context row {row}, column '{category.name}': '{value}' is not one of the categories that the "
                    f"model knows: {known}"
                )
        parts += [np.asarray([str(v) == label for v in column], dtype=float) for label in category.labels[1:]]
    return as_context(np.stack(parts, 1), rows, width)


def give(owner: Any, handle: Any, categories: list[Category]) -> None:
    """A model keeps the categories in its file."""
    keep = [(ctypes.c_char_p * len(c.labels))(*(label.encode() for label in c.labels)) for c in categories]
    array = (abi.hl_category * len(categories))()
    for entry, category, labels in zip(array, categories, keep):
        entry.name = category.name.encode()
        entry.column = category.column
        entry.count = len(category.labels)
        entry.labels = ctypes.cast(labels, ctypes.POINTER(ctypes.c_char_p))
    owner.check(lib.hl_density_set_categories(handle, len(categories), array))


def of_model(handle: Any) -> list[Category]:
    found = []
    for i in range(lib.hl_density_categories(handle)):
        c = lib.hl_density_get_category(handle, i)
        found.append(Category(c.name.decode(), c.column, [c.labels[k].decode() for k in range(c.count)]))
    return found
