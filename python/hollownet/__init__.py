"""Hollow: exact dimension-wise derivatives, densities and stochastic equations, from Python.

Every number is computed by the C library and equals that of the program `hollow` to the bit.
"""

from ._abi import HL_VERSION as __version__
from ._data import read_parquet
from ._density import Density, OutlierDetector
from ._errors import (
    DataWarning,
    FileError,
    FitWarning,
    FormatError,
    HollowError,
    InvalidError,
    OutOfMemory,
    SolveError,
    UnsupportedError,
)
from ._library import get_threads, library_path, ranks, threads
from ._net import Evaluation, Gradients, Net
from ._ode import methods, odeint
from ._report import Report
from ._sde import SDE
from ._vae import VAE

__all__ = [
    "SDE",
    "VAE",
    "DataWarning",
    "Density",
    "Evaluation",
    "FileError",
    "FitWarning",
    "FormatError",
    "Gradients",
    "HollowError",
    "InvalidError",
    "Net",
    "OutOfMemory",
    "OutlierDetector",
    "Report",
    "SolveError",
    "UnsupportedError",
    "__version__",
    "get_threads",
    "library_path",
    "methods",
    "odeint",
    "ranks",
    "read_parquet",
    "threads",
]
