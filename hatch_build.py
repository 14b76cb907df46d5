"""Compile the C kernels into the wheel where there is a compiler; without one the package works all the same.

A wheel without kernels has their sources, so that they can be compiled after the installation.

With the variable ``HANLATTICE_WHEEL``, such as ``musllinux_1_2_aarch64``, zig compiles them for that platform, and
a failure is an error. The platforms are listed in ``kernels/compiling.py``.
"""

import os
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILING = "src/hanlattice/kernels/compiling.py"


class Kernels(BuildHookInterface):
    """Tags a wheel with kernels for its platform and any Python 3, since ctypes opens them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compiling = runpy.run_path(str(Path(self.root) / COMPILING))
        platform = os.environ.get("HANLATTICE_WHEEL", "")
        if platform and platform not in compiling["TARGETS"]:
            known = ", ".join(compiling["TARGETS"])
            raise SystemExit(f"HANLATTICE_WHEEL: there is no platform {platform!r}; there are {known}")
        made: list[Path] = compiling["compile_for"](platform) if platform else compiling["compile_all"]()
        if not made:
            self.app.display_warning(
                "no C compiler was found for the kernels: numpy will run the model, more slowly"
            )
            if version != "editable":
                sources = [
                    path for end in ("*.c", "*.h") for path in (Path(self.root) / COMPILING).parent.glob(end)
                ]
                build_data["force_include"] |= {str(path): f"hanlattice/kernels/{path.name}" for path in sources}
            return
        platform = platform or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"], build_data["tag"] = False, f"py3-none-{platform}"
        if version != "editable":
            build_data["artifacts"] += [str(path.relative_to(self.root)) for path in made]
