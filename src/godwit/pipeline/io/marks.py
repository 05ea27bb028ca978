"""What a folder of tables is: which job made it, as batch or stream, with which options and from which checkpoint.

The mark stands in the folder as `_godwit.json`. A run that would mix its rows with those of another kind, or add rows a
second time, is refused, with what would be right.
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping

import msgspec

from godwit import __version__
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.files import Files, within

MARK, CHECKPOINT, CHECKPOINT_ID = "_godwit.json", "_checkpoint", "_godwit_id"
BATCH, STREAM = "batch", "stream"


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """`options` are those that decide what the rows mean, as they are typed: {"--window": "1 day"}."""

    job: str
    mode: str
    options: Mapping[str, str] = {}
    checkpoint: str = ""
    version: str = __version__

    def encoded(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"


def deciding(**options: object) -> dict[str, str]:
    """Options by the names that people type, without those that were not given."""
    given = {name: value for name, value in options.items() if value not in (None, "", (), False)}
    return {f"--{name.replace('_', '-')}": _typed(value) for name, value in sorted(given.items())}


def _typed(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def read(files: Files, folder: str) -> Mark | None:
    text = files.read(within(folder, MARK))
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Mark)
    except msgspec.DecodeError as error:
        raise PipelineError(f"{within(folder, MARK)}: damaged: {error}") from None


def claim_batch(files: Files, folder: str, asked: Mark) -> None:
    """Whether a batch may put its tables in the place of what is in the folder; else `PipelineError`."""
    found = _of_same_job(files, folder, asked)
    if found is not None and found.mode == STREAM:
        raise PipelineError(
            f"{folder}: belongs to a stream, whose rows and checkpoint a batch would replace; right would be"
            f" {_command(asked, f'{folder}-{BATCH}')}, or --stream to go on with the stream"
        )


def claim_stream(files: Files, folder: str, asked: Mark) -> None:
    """Whether a stream may begin or go on there; a new one is marked. Else `PipelineError`."""
    found, there = _of_same_job(files, folder, asked), set(files.names(folder))
    if found is None or (found.mode == STREAM and there <= {MARK}):
        _begin(files, folder, asked)
        return
    if found.mode == BATCH:
        raise PipelineError(
            f"{folder}: has the tables of a batch, and a stream would add the same rows to them; right would be"
            f" {_command(asked, f'{folder}-{STREAM}', '--stream')}"
        )
    if found.options != asked.options:
        raise PipelineError(f"{folder}: {_changed(found, asked)}")
    if files.read(within(folder, f"{CHECKPOINT}/{CHECKPOINT_ID}")) != found.checkpoint:
        raise PipelineError(
            f"{folder}: its checkpoint {within(folder, CHECKPOINT)} is gone or another's, and without it all rows would"
            f" be added a second time; right would be {_command(asked, f'{folder}-2', '--stream')}, or to remove"
            f" {folder} and begin anew"
        )


def _of_same_job(files: Files, folder: str, asked: Mark) -> Mark | None:
    found = read(files, folder)
    if found is None and files.names(folder):
        raise PipelineError(
            f"{folder}: is not empty, and has no {MARK} that would say which run its files are of;"
            " name another --out, or move them away"
        )
    if found is not None and found.job != asked.job:
        raise PipelineError(f"{folder}: has the tables of {found.job}; right would be another --out for {asked.job}")
    return found


def _begin(files: Files, folder: str, asked: Mark) -> None:
    """The mark comes first: a folder with nothing but a mark is begun again."""
    own = msgspec.structs.replace(asked, checkpoint=uuid.uuid4().hex)
    files.make_folder(folder)
    files.write(within(folder, MARK), own.encoded())
    files.write(within(folder, f"{CHECKPOINT}/{CHECKPOINT_ID}"), own.checkpoint)


def _changed(found: Mark, asked: Mark) -> str:
    names = sorted(set(found.options) | set(asked.options))
    before = [_option(found, name) for name in names if found.options.get(name) != asked.options.get(name)]
    now = [_option(asked, name) for name in names if found.options.get(name) != asked.options.get(name)]
    return (
        f"the stream there was begun with {' '.join(before)}, and {' '.join(now)} would mix rows that mean two things;"
        f" right would be {' '.join(before)}, or another --out"
    )


def _option(mark: Mark, name: str) -> str:
    return f"{name} {shlex.quote(mark.options[name])}" if name in mark.options else f"no {name}"


def _command(asked: Mark, out: str, *words: str) -> str:
    return f"`godwit pipeline {' '.join((asked.job, '...', '--out', shlex.quote(out), *words))}`"
