"""The program `hollow` as the package installs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Replace this process by the program."""
    program = Path(__file__).resolve().parent / "hollow-program"
    if not program.exists():
        sys.exit(f"hollow: {program} is missing; install the package with pip, or use the program of `make`")
    os.execv(program, ["hollow", *sys.argv[1:]])


if __name__ == "__main__":
    main()
