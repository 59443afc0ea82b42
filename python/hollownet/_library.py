"""Find and load the C library, and the objects that every model is made of: contexts, locks, handles.

A context, and all that was made from it, is for one thread at a time. So every model has a context and a lock of its own;
different models run in different threads at once, as ctypes releases Python's lock during a call. A process that was
forked has no worker threads; there a model makes itself a new context from its own bytes when it is first used.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from . import _abi as abi
from ._errors import make_error

_HERE = Path(__file__).resolve().parent


def _candidates() -> list[str]:
    given = os.environ.get("HOLLOW_LIBRARY")
    if given:
        return [given]
    packaged = _HERE / "libhollow.so"
    built = _HERE.parent.parent / "build" / "libhollow.so"
    found = [str(path) for path in (packaged, built) if path.exists()]
    return found or ["libhollow.so.0"]


def _check(lib: Any, path: str) -> None:
    """Refuse a library that these definitions were not made for."""
    advice = "install library and package from the same source"
    try:
        lib.hl_version.restype = ctypes.c_char_p
        version = lib.hl_version().decode()
        lib.hl_struct_sizes.restype = ctypes.POINTER(abi.hl_struct_size)
        sizes = lib.hl_struct_sizes()
    except AttributeError:
        raise ImportError(f"{path} is not the library of hollownet {abi.HL_VERSION}; {advice}") from None
    if version != abi.HL_VERSION:
        raise ImportError(f"{path} is version {version}, but hollownet is version {abi.HL_VERSION}; {advice}")
    found: dict[str, int] = {}
    while sizes[len(found)].name:
        found[sizes[len(found)].name.decode()] = sizes[len(found)].size
    for name, struct in abi.STRUCTS.items():
        if found.get(name) != ctypes.sizeof(struct):
            raise ImportError(
                f"{path} has a {name} of {found.get(name, 0)} bytes, but hollownet expects {ctypes.sizeof(struct)}; {advice}"
            )


def _load() -> tuple[Any, str]:
    errors = []
    for path in _candidates():
        try:
            lib = ctypes.CDLL(path)
        except OSError as error:
            errors.append(f"{path}: {error}")
            continue
        _check(lib, path)
        for name, (result, arguments) in abi.FUNCTIONS.items():
            try:
                function = getattr(lib, name)
            except AttributeError:
                raise ImportError(f"{path} has no function {name}; install library and package together") from None
            function.restype, function.argtypes = result, arguments
        return lib, path
    raise ImportError(
        "cannot load the library libhollow.so; build it with `make`, or give its path in the environment variable "
        "HOLLOW_LIBRARY (" + "; ".join(errors) + ")"
    )


lib, library_path = _load()

# ---- threads ----

_local = threading.local()


def _machine_threads() -> int:
    """All that this process can keep busy, unless HOLLOW_THREADS or OMP_NUM_THREADS says otherwise."""
    for name in ("HOLLOW_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "")
        if text.isdigit() and int(text) > 0:
            return min(int(text), 256)
    return int(lib.hl_threads_available())


def get_threads() -> int:
    """The number of threads that models made now will use.

    Results are the same bits for any number of threads.
    """
    return getattr(_local, "threads", None) or _machine_threads()


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Models that are made or loaded inside of the block, by this thread, use `count` threads.

    >>> with hollownet.threads(1):
    ...     net = hollownet.Net(dim=3)
    """
    before = getattr(_local, "threads", None)
    _local.threads = check_threads(count)
    try:
        yield
    finally:
        _local.threads = before


def encode_path(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a path for C, where a NUL would end it: another file would be read or replaced."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("a path has no NUL in it")
    return name


def check_threads(count: int | None) -> int:
    if count is None:
        return get_threads()
    if isinstance(count, bool) or int(count) != count or not 1 <= count <= 256:
        raise ValueError(f"threads is {count!r}; it must be an integer from 1 to 256")
    return int(count)


# ---- ranks ----


@contextlib.contextmanager
def ranks(rank: int, size: int, gather: Callable[[bytes], list[bytes]]) -> Iterator[None]:
    """Models that are fitted inside of the block, by this thread, are fitted together with those of the other ranks.

    All ranks make the same calls with the same data, settings and seed, and get the same model, to the bit, as one alone. `gather`
    gets the bytes of this rank and returns the list of those of all ranks, in their order: ``comm.allgather`` of mpi4py does so.

    With mpi4py, where ``comm`` is ``MPI.COMM_WORLD``::

        with hollownet.ranks(comm.rank, comm.size, comm.allgather):
            model = hollownet.Density().fit(X)
    """
    if not 0 <= rank < size:
        raise ValueError(f"there is no rank {rank} of {size}")

    def exchange(mine: int, sizes: int, everything: int, user: int) -> int:
        counts = (ctypes.c_size_t * size).from_address(sizes)
        try:
            parts = gather(ctypes.string_at(mine, counts[rank]))
        except Exception:  # nothing may pass through the library
            return 1
        if [len(part) for part in parts] != list(counts):
            return 1
        ctypes.memmove(everything, b"".join(parts), sum(counts))
        return 0

    before = getattr(_local, "ranks", None)
    _local.ranks = abi.hl_ranks(rank=rank, size=size, gather=abi.hl_gather_fn(exchange))
    try:
        yield
    finally:
        _local.ranks = before


# ---- contexts and handles ----


class Context:
    """An hl_context of this process."""

    def __init__(self, count: int | None = None) -> None:
        self.threads = check_threads(count)
        self.pid = os.getpid()
        self.lock = threading.RLock()
        options = abi.hl_context_options(threads=self.threads)
        handle = ctypes.c_void_p()
        status = lib.hl_context_create(ctypes.byref(options), ctypes.byref(handle))
        if status < 0:
            raise make_error(status, "")
        self.handle = handle.value
        self.ranks = getattr(_local, "ranks", None)  # kept: the library calls its function
        self._finalizer = weakref.finalize(self, _release, lib.hl_context_free, self.handle, self.pid, None)
        if self.ranks is not None:
            self.check(lib.hl_context_set_ranks(self.handle, ctypes.byref(self.ranks)))

    def check(self, status: int) -> int:
        """Raise the library's error; pass on what is none."""
        if status < 0:
            raise make_error(status, lib.hl_context_message(self.handle).decode("utf-8", "replace"))
        return status


def _release(free: Callable[[Any], None], handle: Any, pid: int, keep: Any) -> None:
    """Free a handle, but not in a forked process, whose context has no threads. `keep` is alive until then."""
    if os.getpid() == pid:
        free(handle)


class Handle:
    """A library's object, made by `create(*arguments, out)` and freed by `free`, before its context and before `keep`."""

    def __init__(
        self,
        context: Context,
        create: Callable[..., int],
        free: Callable[[Any], None],
        *arguments: Any,
        keep: Any = None,
    ) -> None:
        out = ctypes.c_void_p()
        context.check(create(*arguments, ctypes.byref(out)))
        self.context = context
        self.value = out.value
        self._finalizer = weakref.finalize(self, _release, free, out.value, context.pid, (context, keep))

    @classmethod
    def adopt(cls, context: Context, value: Any, free: Callable[[Any], None]) -> Handle:
        """Own what a call of the library has made already."""
        self = cls.__new__(cls)
        self.context, self.value = context, value
        self._finalizer = weakref.finalize(self, _release, free, value, context.pid, (context, None))
        return self


class Model:
    """What is read from and written to bytes: networks, densities, equations.

    A subclass names the functions `_save`, `_load`, `_write`, `_read` and `_free` of the library.
    """

    _save = _load = _write = _read = _free = ""

    def __init__(self, create: Callable[[Context], Handle], threads: int | None = None) -> None:
        self._attach(Context(threads), create)

    def _attach(self, context: Context, create: Callable[[Context], Handle]) -> None:
        self._context = context
        self._handle = create(context)
        self._cache: dict[Any, Any] = {}

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Context]:
        """The model's context, held by this thread."""
        if self._context.pid != os.getpid():
            self._refresh()
        with self._context.lock:
            yield self._context

    def _refresh(self) -> None:
        """In a forked process: become a copy with a context of this process."""
        old = self._context.threads
        content = self._bytes(self._handle.value)
        self._attach(Context(old), lambda context: self._handle_of(context, content))

    @classmethod
    def _handle_of(cls, context: Context, content: bytes) -> Handle:
        return Handle(context, getattr(lib, cls._read), getattr(lib, cls._free), context.handle, content, len(content))

    def _bytes(self, handle: Any) -> bytes:
        write = getattr(lib, self._write)
        size = ctypes.c_size_t()
        status = write(handle, None, 0, ctypes.byref(size))
        if status < 0:
            raise make_error(status, lib.hl_context_message(self._context.handle).decode("utf-8", "replace"))
        buffer = ctypes.create_string_buffer(size.value)
        status = write(handle, buffer, size.value, ctypes.byref(size))
        if status < 0:
            raise make_error(status, lib.hl_context_message(self._context.handle).decode("utf-8", "replace"))
        return buffer.raw

    def to_bytes(self) -> bytes:
        """The bytes of the model's file."""
        with self._locked():
            return self._bytes(self._handle.value)

    @classmethod
    def from_bytes(cls, content: bytes, *, threads: int | None = None) -> Any:
        """A model from the bytes of its file."""
        content = bytes(content)
        self = cls.__new__(cls)
        Model.__init__(self, lambda context: cls._handle_of(context, content), threads)
        return self

    @classmethod
    def _adopt(cls, context: Context, value: Any) -> Any:
        """A model that the library has made in this context."""
        self = cls.__new__(cls)
        self._attach(context, lambda context: Handle.adopt(context, value, getattr(lib, cls._free)))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model's file, atomically."""
        name = encode_path(path)
        with self._locked() as context:
            context.check(getattr(lib, self._save)(self._handle.value, name))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> Any:
        """Read a model's file."""
        name = encode_path(path)
        self = cls.__new__(cls)
        read, free = getattr(lib, cls._load), getattr(lib, cls._free)
        Model.__init__(self, lambda context: Handle(context, read, free, context.handle, name), threads)
        return self

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.to_bytes())

    def __copy__(self) -> Any:
        return type(self).from_bytes(self.to_bytes(), threads=self._context.threads)

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()


def _restore(cls: Any, content: bytes) -> Any:
    return cls.from_bytes(content)
