"""__main__.py - `python -m stretto` and the command `stretto` of the wheel: the program that the package holds, or that of PATH."""
from __future__ import annotations

import os
import shutil
import sys

from .runtime import find_onnx_runtime


def program() -> str:
    """Path of the program: of the wheel, of the build folder of the source tree, or of PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    built = os.environ.get("STRETTO_LIBRARY", "")
    own = [os.path.join(here, "bin", "stretto"), os.path.join(built if os.path.isdir(built) else os.path.dirname(built), "cli", "stretto"), os.path.join(here, "..", "..", "..", "build", "release", "cli", "stretto")]
    found = next((p for p in own if os.access(p, os.X_OK)), None) or shutil.which("stretto")
    if not found:
        sys.exit("stretto: the program is not in this package; install the wheel, or give its folder in PATH")
    return found


def main() -> None:
    path = program()
    if {"export", "import"} & set(sys.argv[1:2]):
        find_onnx_runtime()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
