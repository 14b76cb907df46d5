"""Compile the C kernels into the wheel where there is a compiler; without one the package works all the same."""

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILING = "src/hanlattice/kernels/compiling.py"


class Kernels(BuildHookInterface):
    """Tags a wheel with kernels for its platform and any Python 3, since ctypes opens them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        made: list[Path] = runpy.run_path(str(Path(self.root) / COMPILING))["compile_all"]()
        if not made:
            self.app.display_warning("no C compiler was found for the kernels: ONNX Runtime will read the model")
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{platform}"
        if version != "editable":
            build_data["artifacts"] += [str(path.relative_to(self.root)) for path in made]
