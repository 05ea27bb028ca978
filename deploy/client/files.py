"""The files of godwit-client: those that the distribution `godwit` leaves out, since it depends on this one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent.parent


class Files(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # the folder itself is then on the path
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["exclude"]:
            build_data["force_include"][f"{ROOT}{path}"] = path.removeprefix("/src/")
