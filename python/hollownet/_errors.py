"""Exceptions and warnings."""

from __future__ import annotations

import re

from . import _abi as abi


class HollowError(Exception):
    """An error that the library reports. `status` is its code, such as ``HL_ERR_INVALID``."""

    status: int = 0


class InvalidError(HollowError, ValueError):
    """An argument, an option or the data are not valid."""


class FormatError(HollowError, ValueError):
    """A file, or the bytes of a model, are damaged or of another kind or version."""


class FileError(HollowError, OSError):
    """A file cannot be read or written."""


class SolveError(HollowError, ArithmeticError):
    """A solve failed, or a value is not finite."""


class OutOfMemory(HollowError, MemoryError):
    """The library could not get memory."""


class UnsupportedError(HollowError, NotImplementedError):
    """The library cannot do this."""


class DataWarning(UserWarning):
    """Something about the data that a user should know, such as a column of whole numbers."""


class FitWarning(UserWarning):
    """Training ended in a way that a user should know, such as a model that is no better than a normal distribution."""


_CLASSES = {
    abi.HL_ERR_NOMEM: OutOfMemory,
    abi.HL_ERR_INVALID: InvalidError,
    abi.HL_ERR_SHAPE: InvalidError,
    abi.HL_ERR_IO: FileError,
    abi.HL_ERR_FORMAT: FormatError,
    abi.HL_ERR_UNSUPPORTED: UnsupportedError,
}


def keyword_text(message: str) -> str:
    """A message of the library, in which "option known-drift" is the keyword argument known_drift."""
    return re.sub(r"\boption ([a-z][a-z0-9-]*)", lambda match: match[1].replace("-", "_"), message)


def make_error(status: int, message: str) -> HollowError:
    """The exception for a status that is an error."""
    error = _CLASSES.get(status, SolveError)(keyword_text(message) or abi.STATUS_TEXT.get(status, "unknown status"))
    error.status = status
    return error
