"""Who is at work on a folder that is not of this machine: a file says it, as Hadoop's file systems have no locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import msgspec
import pytest

pytest.importorskip("pyspark")

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.files import Files, LocalFiles
from godwit.pipeline.io.locks import Holder, Lock


class Elsewhere(LocalFiles):
    """Files of which nobody knows where they are; `test_files` shows that Hadoop's answer alike."""

    def local(self, path: str) -> Path | None:
        return None


ELSEWHERE = cast(Files, Elsewhere())


def left_by(holder: Holder, tmp_path: Path) -> Path:
    lock = tmp_path / ".out.lock"
    lock.write_bytes(msgspec.json.encode(holder))
    return lock


def test_one_run_at_a_time_and_the_refusal_names_the_other(tmp_path: Path) -> None:
    held = Lock(ELSEWHERE, str(tmp_path / "out"), "match")
    with pytest.raises(PipelineError, match=rf"match of .*, process {os.getpid()}, since .* is at work there"):
        Lock(ELSEWHERE, str(tmp_path / "out"), "ingest")
    held.release()
    Lock(ELSEWHERE, str(tmp_path / "out"), "ingest").release()
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_process_that_is_gone_from_this_machine_is_taken_over(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    left_by(msgspec.structs.replace(Holder.of_this_process("match"), pid=gone.pid), tmp_path)
    own = Lock(ELSEWHERE, str(tmp_path / "out"), "ingest")
    assert msgspec.json.decode((tmp_path / ".out.lock").read_bytes(), type=Holder).pid == os.getpid()
    own.release()


@pytest.mark.parametrize("told", ["of another machine", "damaged"])
def test_where_nobody_knows_whether_a_run_is_gone_a_person_decides(told: str, tmp_path: Path) -> None:
    lock = left_by(msgspec.structs.replace(Holder.of_this_process("match"), host="elsewhere"), tmp_path)
    if told == "damaged":
        lock.write_text("{")
    before = lock.read_text()
    with pytest.raises(PipelineError, match=rf"if that run is gone, remove {lock}"):
        Lock(ELSEWHERE, str(tmp_path / "out"), "match")
    assert lock.read_text() == before
