"""Machine code of the matcher for the wheel of `godwit`: made once, by whoever builds, and never on a device.

`godwit/tables/compiled/doors.py` is compiled ahead of time into an extension module that needs numpy and no numba. It
is for any processor of this kind (`GODWIT_CPU=host` for this one alone). With `GODWIT_MACHINE=clone` a wheel takes what
the clone has beside its sources, where that is of these sources; else it is compiled for each wheel.

    python deploy/machine.py    the same for a clone, beside its sources, unless it is there; git does not see it

A process that finds it starts a second sooner. Once the sources have changed it is not used any more, and numba
compiles them when they are first used.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent.parent
PLACE = "godwit/tables/compiled"
CPU = {"x86_64": "x86-64-v2"}
"""The oldest processor that it must run on: for x86 those since 2009. Elsewhere what the compiler calls generic."""


class Machine(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if not has_linker():
            raise SystemExit("godwit: a wheel needs a C compiler, which links its machine code: install gcc, or set CC")
        self.folder = tempfile.mkdtemp()
        module = (of_the_clone() if os.environ.get("GODWIT_MACHINE") == "clone" else None) or compiled(self.folder)
        build_data["force_include"][str(module)] = f"{PLACE}/{module.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self.folder, ignore_errors=True)


def main() -> int:
    sys.path.insert(0, str(ROOT / "src"))
    from godwit.tables.compiled import kernels

    if kernels.CAME is not None or kernels.CHECKED:
        return 0
    if not has_linker():
        print("machine: no C compiler here; numba will compile the matcher when it is first used")
        return 0
    print("machine: compiling the matcher, which takes half a minute", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        made = compiled(folder)
        place = ROOT / "src" / PLACE / made.name
        # Under its name only when it is whole: another process may be about to load it.
        unfinished = shutil.copy(made, place.with_suffix(".unfinished"))
        Path(unfinished).replace(place)
    return 0


def of_the_clone() -> Path | None:
    """What `main` has made of the sources as they are, if it has."""
    sys.path.insert(0, str(ROOT / "src"))
    from godwit.tables.compiled import kernels

    return None if kernels.CAME is None else Path(str(sys.modules[kernels.MACHINE].__file__))


def has_linker() -> bool:
    return shutil.which(os.environ.get("CC", "cc")) is not None


def compiled(folder: str) -> Path:
    """The extension module `machine`, in this folder. Python looks for no garbage meanwhile: all of it is needed."""
    gc.disable()
    sys.path.insert(0, str(ROOT / "src"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba names no successor of pycc yet
        from numba import types
        from numba.pycc import CC

        from godwit.tables.compiled import doors, kernels
        from godwit.tables.compiled.entries import Kernels
    target = CC("machine", source_module=doors)
    target.output_dir = folder
    target.target_cpu = os.environ.get("GODWIT_CPU") or CPU.get(os.uname().machine, "")
    number = kernels.digest()
    target.export("digest", types.int64())(lambda: number)
    made, hints = doors.made(number), get_type_hints(Kernels)
    for name, arguments in doors.signatures(made).items():
        door = doors.dispatcher(getattr(made, name))
        target.export(name, native(get_args(hints[name])[1])(*arguments))(door.py_func)
    target.compile()
    (module,) = Path(folder).glob("machine.*")
    return module


def native(hint: Any) -> Any:
    """What a kernel returns, as numba calls it. To ask numba would mean to compile everything twice."""
    from numba import types

    from godwit.tables.compiled import doors

    if get_origin(hint) is tuple and hint not in doors.NATIVE:
        return types.Tuple([native(one) for one in get_args(hint)])
    return {bool: types.boolean, None: types.none, **doors.NATIVE}[hint]


if __name__ == "__main__":
    raise SystemExit(main())
