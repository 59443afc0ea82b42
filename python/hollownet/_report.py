"""Reports: what a model says of data, as a page, as a head for notebooks, and as numbers."""

from __future__ import annotations

import ctypes
import errno
import json
import os
from typing import Any, Callable

import numpy as np

from . import _abi as abi
from ._data import as_seed, pointer
from ._library import Context, Handle, Model, lib


class Report:
    """A verdict, the numbers behind it, and a page of HTML that shows them.

    Attributes
    ----------
    verdict : str
        A sentence.
    level : str
        "good", "minor" or "wrong".
    numbers : dict
        All numbers, as `hollow report --json` prints them.
    html : str
        The page, which needs no other file.
    """

    def __init__(self, head: str, html: str, numbers: dict[str, Any]) -> None:
        self._head, self.html, self.numbers = head, html, numbers
        self.verdict: str = numbers["verdict"]
        self.level: str = numbers["level"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page. A file that is there is replaced at once; links stay links, devices and pipes are refused."""
        name = os.path.realpath(path)
        if os.path.exists(name) and not os.path.isfile(name):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        temporary = f"{name}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(self.html)
            os.replace(temporary, name)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise

    def _repr_html_(self) -> str:
        return self._head

    def __repr__(self) -> str:
        return f"Report({self.verdict!r})"


def _text(owner: Context, call: Callable[..., int]) -> str:
    size = ctypes.c_size_t()
    owner.check(call(None, 0, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    owner.check(call(buffer, size.value, ctypes.byref(size)))
    return buffer.raw.decode()


def _texts(owner: Context, handle: Handle) -> Report:
    report = handle.value
    head = _text(owner, lambda *to: lib.hl_report_html(report, abi.HL_REPORT_HEAD, *to))
    page = _text(owner, lambda *to: lib.hl_report_html(report, abi.HL_REPORT_PAGE, *to))
    return Report(head, page, json.loads(_text(owner, lambda *to: lib.hl_report_json(report, *to))))


def choose_rows(total: int, rows: int, seed: int) -> np.ndarray:
    """The rows of a large table that a report looks at: the same as those of the program."""
    index = np.empty(min(total, rows), dtype=np.uintp)
    lib.hl_report_pick(total, rows, seed, pointer(index))
    return index


def report_density(
    model: Model, x: np.ndarray, context: np.ndarray | None, rows: int, draws: int, random_state: Any, title: str
) -> Report:
    seed = as_seed(random_state)
    if rows < 1 or draws < 1:
        raise ValueError("rows and draws must be at least 1")
    index = choose_rows(len(x), rows, seed)
    some, given = np.ascontiguousarray(x[index]), None if context is None else np.ascontiguousarray(context[index])
    data = abi.hl_report_rows(
        rows=len(index), x=pointer(some), context=pointer(given), index=pointer(index), total=len(x)
    )
    options = abi.hl_report_options(seed=seed, draws=draws, title=title.encode())
    with model._locked() as owner:
        arguments = (model._handle.value, ctypes.byref(data), ctypes.byref(options))
        return _texts(owner, Handle(owner, lib.hl_report_density, lib.hl_report_free, *arguments))


def report_sde(model: Model, data: Any, random_state: Any, title: str) -> Report:
    options = abi.hl_report_options(seed=as_seed(random_state), title=title.encode())
    with model._locked() as owner:
        arguments = (model._handle.value, ctypes.byref(data), ctypes.byref(options))
        return _texts(owner, Handle(owner, lib.hl_report_sde, lib.hl_report_free, *arguments))


def report_vae(model: Model, rows: Any, random_state: Any, title: str) -> Report:
    options = abi.hl_report_options(seed=as_seed(random_state), title=title.encode())
    with model._locked() as owner:
        arguments = (model._handle.value, ctypes.byref(rows), ctypes.byref(options))
        return _texts(owner, Handle(owner, lib.hl_report_vae, lib.hl_report_free, *arguments))
