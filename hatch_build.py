"""Builds the kernels in C into the package where there is a compiler; without one it works all the same."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILING = "src/hanlattice/kernels/compiling.py"


class Kernels(BuildHookInterface):
    """A wheel with compiled kernels is for one kind of machine, and its name says so."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        made: list[Path] = runpy.run_path(str(Path(self.root) / COMPILING))["compile_all"]()
        if not made:
            self.app.display_warning("no C compiler was found for the kernels: ONNX Runtime will read the model")
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        if version != "editable":
            build_data["artifacts"] += [str(path.relative_to(self.root)) for path in made]
