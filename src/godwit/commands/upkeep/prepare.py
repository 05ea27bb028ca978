"""`godwit prepare`: compile the matcher ahead, so that no broker does it while it serves."""

from __future__ import annotations

import time

import msgspec
import typer

from godwit.commands.command import Json


class PrepareOptions(msgspec.Struct, frozen=True, kw_only=True):
    as_json: Json = False


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    compiled: int
    """Functions that had to be compiled."""
    known: int
    """Functions that were there already."""
    folder: str
    """Where numba keeps them; empty where they came with the package."""
    seconds: float
    processor_seconds: float


def prepare(options: PrepareOptions) -> int:
    """Compile the matcher for this machine, once and ahead.

    Wheels bring their machine code along, and then there is nothing to do. Otherwise numba compiles it (godwit[jit]). A
    broker that has many conditions to match does so beside its work, and asks conditions one by one meanwhile. What is
    compiled is kept beside the installed files, or in NUMBA_CACHE_DIR.

    Examples:

        godwit prepare

        NUMBA_CACHE_DIR=/var/cache/godwit godwit prepare
    """
    done = prepared()
    if options.as_json:
        typer.echo(msgspec.json.encode(done).decode())
    elif done.folder == "":
        typer.echo(f"all {done.known} functions came as machine code with the package: nothing is left to compile")
    elif done.compiled:
        typer.echo(
            f"{done.folder}: {done.compiled} functions compiled in {done.seconds:.1f} s"
            f" ({done.processor_seconds:.1f} s of processor time)"
        )
    else:
        typer.echo(f"{done.folder}: all {done.known} functions were there, and were read in {done.seconds:.1f} s")
    return 0


def prepared() -> Prepared:
    from godwit.commands.console import Bar, Reports

    began_s, used_s = time.monotonic(), time.process_time()
    with Bar(Reports().console, "compiling the matcher") as bar:
        from godwit.tables.compiled import kernels

        compiled, known, folder = 0, len(kernels.KERNELS), ""
        if kernels.CAME is None:
            from godwit.tables.compiled.doors import compile_all

            compiled, known, folder = compile_all(kernels.KERNELS, lambda done, total: bar.update(done / total))
    return Prepared(
        compiled=compiled,
        known=known,
        folder=folder,
        seconds=time.monotonic() - began_s,
        processor_seconds=time.process_time() - used_s,
    )
