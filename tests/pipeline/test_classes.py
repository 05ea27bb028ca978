"""Spark's classes are kept once, whole or not at all, and no Java fails for an archive that is none."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from godwit.pipeline import classes, session
from godwit.pipeline.session import make_java_ready


@pytest.fixture
def java() -> Path:
    make_java_ready()
    found = session.java()
    assert found is not None
    return found


def left_at(option: str) -> Path:
    """Where Java would leave its archive."""
    word = option.split()[0]
    assert word.startswith(classes.LEAVING)
    return Path(word.partition("=")[2])


def test_the_first_session_leaves_what_the_next_ones_take(java: Path, tmp_path: Path) -> None:
    own = {"XDG_CACHE_HOME": str(tmp_path)}
    archive = left_at(classes.option(java, own))
    assert archive.parent == classes.cache(own)
    archive.write_bytes(b"\0\0\0\0 not finished")
    assert classes.option(java, own) == "", "somebody is writing it"
    archive.write_bytes(b"\xf0 whole")
    second = archive.with_name(archive.name.replace(str(os.getpid()), "1"))
    second.write_bytes(b"\xf0 whole too")
    os.utime(archive, (1e9, 1e9))
    assert classes.option(java, own).split()[0] == f"{classes.TAKING}{archive}"
    assert not second.exists(), "one is enough"


def test_what_a_killed_java_left_is_removed_and_made_anew(java: Path, tmp_path: Path) -> None:
    own = {"XDG_CACHE_HOME": str(tmp_path)}
    archive = left_at(classes.option(java, own))
    archive.write_bytes(b"\0\0\0\0")
    hour_ago = time.time() - 3600
    os.utime(archive, (hour_ago, hour_ago))
    assert left_at(classes.option(java, own)) == archive
    assert not archive.exists()


@pytest.mark.parametrize("name", [classes.OFF, "SPARK_CONF_DIR", "SPARK_HOME"])
def test_nothing_is_kept_where_it_would_not_help_or_is_not_wanted(java: Path, tmp_path: Path, name: str) -> None:
    assert classes.option(java, {"XDG_CACHE_HOME": str(tmp_path), name: "off"}) == ""


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_start(java: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert classes.option(java, {"XDG_CACHE_HOME": str(tmp_path / "file")}) == ""


def test_java_starts_without_a_word_where_the_archive_is_damaged(java: Path, tmp_path: Path) -> None:
    own = {"XDG_CACHE_HOME": str(tmp_path)}
    left_at(classes.option(java, own)).write_bytes(b"\xf0 nothing of the kind")
    words = [str(java), *classes.option(java, own).split(), "-version"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
