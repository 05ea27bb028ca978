"""The audit sees what it is meant to see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools import audit

ROOT = Path(__file__).resolve().parent.parent
HASH = "sha256:" + "0" * 64
GOOD = {
    "name": "good",
    "version": "1.0",
    "source": {"registry": "https://registry.invalid/simple"},
    "wheels": [{"url": "https://registry.invalid/good.whl", "hash": HASH}],
}


def test_the_lock_and_what_is_installed_are_in_order() -> None:
    ran = subprocess.run([sys.executable, "-m", "tools.audit"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_file_without_a_hash_is_seen() -> None:
    assert not list(audit.unpinned([GOOD]))
    assert list(audit.unpinned([{**GOOD, "wheels": [{"url": "x.whl"}]}]))
    assert list(audit.unpinned([{**GOOD, "wheels": []}]))


def test_what_comes_from_somewhere_else_is_seen() -> None:
    assert not list(audit.foreign([GOOD]))
    assert list(audit.foreign([{**GOOD, "source": {"git": "https://somebody.example/good"}}]))


def test_what_is_installed_and_not_locked_is_seen() -> None:
    assert not list(audit.astray([GOOD], {"good": "1.0", "godwit": "9", "pip": "1"}))
    assert list(audit.astray([GOOD], {"good": "1.1"}))
    assert list(audit.astray([GOOD], {"good": "1.0", "stranger": "1.0"}))


def test_what_is_locked_for_this_machine_and_not_installed_is_seen() -> None:
    lines = ["good==1.0", "elsewhere==2.0 ; sys_platform == 'nowhere'", "old==1.0 ; python_version < '3'"]
    assert not list(audit.missing(lines, {"good": "1.0"}))
    (line,) = audit.missing(lines, {})
    assert line.startswith("good==1.0 is locked and not installed")


def test_what_should_be_there_is_read_from_the_lock() -> None:
    names = {line.partition("==")[0] for line in audit.wanted()}
    assert {"msgspec", "websockets", "pytest", "mypy"} <= names


def test_a_page_that_loads_something_from_elsewhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "views").mkdir()
    (tmp_path / "index.html").write_text('<script src="https://cdn.example/x.js"></script><a href="//b.example/">')
    (tmp_path / "views" / "a.js").write_text("// fetch of ours\nfetch('http://127.0.0.1:1/'); import '/dom.js'")
    (tmp_path / "views" / "b.css").write_text("@import url(//fonts.example/a.css);")
    assert list(audit.strange(tmp_path)) == [
        "index.html: names the address b.example",
        "index.html: names the address cdn.example",
        "views/b.css: names the address fonts.example",
    ]
