"""Read a model file (safetensors) without the library: its header, and its arrays by name."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

_DTYPES = {"F32": np.float32, "F64": np.float64}


class ModelFile:
    """`spec` is the architecture, `parameters` are arrays of the first network, `columns` the units of a density model."""

    def __init__(self, path: str | Path) -> None:
        data = Path(path).read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        meta = header.pop("__metadata__")
        self.metadata: dict[str, str] = meta
        self.spec: dict[str, Any] = json.loads(meta["architecture"])
        self.columns = json.loads(meta.get("columns", "[]"))
        self.parameters: dict[str, np.ndarray] = {}
        for name, entry in header.items():
            if not name.removeprefix("0.").startswith(("conditioner.", "transformer.")):
                continue
            first, last = entry["data_offsets"]
            values = np.frombuffer(data[8 + size + first : 8 + size + last], _DTYPES[entry["dtype"]])
            self.parameters[name.removeprefix("0.")] = values.reshape(entry["shape"]).copy()
