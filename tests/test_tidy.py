"""The house is tidy, and the tidiness checks see what they are meant to see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools import english, tidy

ROOT = Path(__file__).resolve().parent.parent

ENTRIES = ("godwit", "godwit.cli", "godwit.__main__")

ALLOWED = {"godwit.tables.compiled.books": {"files": "the environment says whether compiled code is checked"}}
"""Modules of pure rooms that may do what the others may not, and why."""

WAITING = {
    "godwit.lab.product.exploration": "explore: grids of godwit pipeline sweep name it",
    "godwit.sim.brokers.apart": "explore: random worlds of sessions out of reach; seeds that failed are kept as tests",
    "godwit.sim.fabrics.web": "explore: tree fabrics over cables that break; tests run it",
    "godwit.sim.fabrics.country": "explore: what crosses between sites, beside one tree; tests and a benchmark run it",
    "godwit.sim.brokers.sky": "explore: worlds of brokers without infrastructure; tests run it",
    "godwit.protocols.handoff_schemes.proxy": "published: proactive-handoff F5, F7",
    "godwit.protocols.handoff_schemes.proactive.recovery": "published: proactive-handoff F27",
    "godwit.protocols.routing.phoenix": "published: mft-pubsub F6, F26",
    "godwit.protocols.routing.simple": "published: mft-pubsub F5",
    "godwit.tables.matching.rates": "published: content-routing F25",
}
"""Modules that nothing uses yet, and why they are here: a capability that is being built will use them, or they are the
published protocol that a feature of the specs asks for, which only its tests run."""

KIB = 1024
REGISTRIES = [
    f"{name}.{domain}"
    for domain, names in {"org": ("anaconda", "maven", "npmjs", "pypi", "pythonhosted"), "io": ("crates",)}.items()
    for name in names
]
"""Put together here, so that this file does not name them either."""


@pytest.fixture(scope="module")
def house() -> tidy.Modules:
    return tidy.read(ROOT / "src", ROOT / "src" / "godwit")


def test_imports_lead_downwards(house: tidy.Modules) -> None:
    assert tidy.misdirected(house) == []


def test_imports_lead_downwards_inside_the_broker(house: tidy.Modules) -> None:
    assert tidy.upwards(house) == []


def test_no_package_is_a_drawer(house: tidy.Modules) -> None:
    assert tidy.drawers(house) == []


def test_a_class_name_occurs_once_in_a_package(house: tidy.Modules) -> None:
    assert tidy.namesakes(house) == []


def test_pure_rooms_touch_no_clock_dice_socket_file_or_log(house: tidy.Modules) -> None:
    assert tidy.impure(house, ALLOWED) == []


def test_every_module_is_reached(house: tidy.Modules) -> None:
    assert tidy.orphans(house, ENTRIES, WAITING) == []


@pytest.mark.parametrize("name", WAITING)
def test_who_waits_says_for_which_capability_or_which_published_feature_it_proves(name: str) -> None:
    capability, _, what = WAITING[name].partition(": ")
    assert capability in ("explore", "published")
    if capability == "published":
        spec, _, numbers = what.partition(" ")
        module = ROOT / "tests" / Path(*name.split(".")[1:])
        marks = module.with_name(f"test_{module.name}.py").read_text()
        assert all(f'"{spec} {number}"' in marks for number in numbers.split(", "))


def test_every_test_module_is_about_something() -> None:
    assert tidy.unmirrored(ROOT) == []


def test_the_repository_stays_small() -> None:
    assert tidy.too_large(tidy.tracked(ROOT), bytes_max=KIB**2, data_bytes_max=2_000_000) == []


def test_no_sentence_of_a_page_or_a_docstring_is_longer_than_forty_words() -> None:
    assert [str(one) for one in english.findings()] == []


def test_no_package_registry_is_named() -> None:
    assert tidy.naming(tidy.tracked(ROOT), REGISTRIES) == []


def test_importing_godwit_loads_nothing_heavy() -> None:
    heavy = {"numba", "numpy", "pyarrow", "rich", "sqlglot", "typer"}
    code = "import sys, godwit; print(*sorted(name for name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert heavy & set(loaded) == set()


def built(folder: Path, files: dict[str, str]) -> tidy.Modules:
    """A small house with these files in it."""
    for name, source in {"__init__.py": "", **files}.items():
        path = folder / "godwit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tidy.read(folder, folder / "godwit")


def found_in(folder: Path, findings: list[str]) -> list[str]:
    return [finding.replace(f"{folder / 'godwit'}/", "") for finding in findings]


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("filters/a.py", "from godwit.tables.b import x"),
        ("filters/a.py", "from godwit.tables import b"),
        ("filters/a.py", "from godwit import tables"),
        ("filters/a.py", "from ..tables import b"),
        ("filters/a.py", "import godwit.tables.b as c"),
        ("filters/__init__.py", "from .. import tables"),
        ("filters/a.py", "def f():\n    import godwit.tables"),
        ("filters/a.py", "from godwit import __version__"),
        ("events.py", "import godwit.filters"),
        ("tables/b.py", "from godwit.protocols.host import Host"),
        ("sim/a.py", "import godwit.net.host"),
        ("net/a.py", "import godwit.sim"),
        ("lab/a.py", "import godwit.pipeline"),
        ("pipeline/a.py", "import godwit.lab"),
        ("commands/a.py", "import godwit.cli"),
        ("console/a.py", "import godwit.cli"),
        ("attic/a.py", "import math"),
    ],
)
def test_an_import_upwards_or_sideways_is_found(tmp_path: Path, importer: str, line: str) -> None:
    house = built(tmp_path, {"tables/__init__.py": "", "tables/b.py": "", "filters/__init__.py": "", importer: line})
    assert len(tidy.misdirected(house)) == 1


def test_imports_downwards_and_within_a_room_pass(tmp_path: Path) -> None:
    house = built(
        tmp_path,
        {
            "__init__.py": "import godwit.cli",
            "cli.py": "from godwit import __version__, commands, console, lab\nfrom . import net",
            "filters/a.py": "import math, godwit.events\nfrom godwit.filters import b\nfrom . import b",
            "lab/a.py": "import godwit.sim, godwit.net, godwit.events",
        },
    )
    assert tidy.misdirected(house) == []


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("clock", "import time"),
        ("clock", "from time import monotonic"),
        ("clock", "import datetime\nx = datetime.datetime.now()"),
        ("clock", "from datetime import datetime as d\nx = d.utcnow"),
        ("dice", "import random\nx = random.random()"),
        ("dice", "import random as r\nx = r.choice"),
        ("dice", "from random import shuffle"),
        ("dice", "from random import Random\nx = Random(1)"),
        ("dice", "import random\nx = random.Random(1)"),
        ("dice", "import numpy as np\nx = np.random.default_rng(0)"),
        ("dice", "from numpy.random import default_rng"),
        ("dice", "from numpy import random"),
        ("dice", "import secrets"),
        ("dice", "from uuid import uuid4"),
        ("sockets", "import socket"),
        ("sockets", "import asyncio.streams"),
        ("files", "x = open('f')"),
        ("files", "def f():\n    with open('f') as g:\n        pass"),
        ("files", "opener = open"),
        ("files", "import os"),
        ("files", "import os.path as p"),
        ("files", "from pathlib import Path"),
        ("files", "def f(path):\n    return path.read_bytes()"),
        ("files", "import numpy as np\nx = np.memmap('f')"),
        ("files", "import numpy\nnumpy.save('f', 1)"),
        ("files", "import pyarrow.parquet as pq"),
        ("logging", "import logging.handlers"),
        ("logging", "import sys\nsys.stderr.write('x')"),
        ("print", "print('x')"),
        ("print", "def f(say=print): ..."),
        ("print", "from rich import print"),
    ],
)
def test_what_a_pure_room_must_not_touch_is_found(tmp_path: Path, kind: str, source: str) -> None:
    house = built(tmp_path, {"tables/a.py": source})
    findings = found_in(tmp_path, tidy.impure(house, {}))
    assert findings
    assert all(f": {kind} in a pure room" in finding for finding in findings)


@pytest.mark.parametrize(
    "source",
    [
        "from random import Random\ndef f(dice: Random) -> float:\n    return dice.random()",
        "import random\ndef f(dice: random.Random) -> None: ...",
        "import datetime\ndef f(when: datetime.datetime) -> int:\n    return when.year",
        "import numpy as np\nx = np.zeros(3)",
        "import sys\nx = sys.intern('x')",
        "def f(host):\n    return host.now(), host.random.random(), host.open",
    ],
)
def test_a_pure_room_may_be_given_what_it_must_not_take(tmp_path: Path, source: str) -> None:
    assert tidy.impure(built(tmp_path, {"protocols/a.py": source}), {}) == []


def test_rooms_with_a_world_of_their_own_may_touch_it(tmp_path: Path) -> None:
    assert tidy.impure(built(tmp_path, {"net/a.py": "import socket, time, random, os\nprint(1)"}), {}) == []


def test_an_exception_counts_for_its_module_and_kind_only(tmp_path: Path) -> None:
    house = built(tmp_path, {"tables/a.py": "import mmap, time", "tables/b.py": "import mmap"})
    assert found_in(tmp_path, tidy.impure(house, {"godwit.tables.a": {"files": "a reason"}})) == [
        "tables/a.py:1: clock in a pure room: time",
        "tables/b.py:1: files in a pure room: mmap",
    ]


@pytest.mark.parametrize("name", ["godwit.tables.a", "godwit.tables.gone"])
def test_an_exception_that_nothing_needs_is_found(tmp_path: Path, name: str) -> None:
    findings = tidy.impure(built(tmp_path, {"tables/a.py": ""}), {name: {"files": "a reason"}})
    assert findings == [f"{name} is allowed files and does not use it: drop the exception"]


def test_a_module_that_nothing_reaches_is_found(tmp_path: Path) -> None:
    house = built(
        tmp_path,
        {
            "__init__.py": "HOME = {'parse': 'godwit.filters.text'}",
            "cli.py": "def f():\n    from godwit.lab import figures",
            "filters/__init__.py": "",
            "filters/text.py": "from .words import w",
            "filters/words.py": "",
            "filters/lost.py": "import godwit.filters.text",
            "lab/__init__.py": "",
            "lab/figures.py": "",
        },
    )
    assert found_in(tmp_path, tidy.orphans(house, ENTRIES, {})) == ["filters/lost.py:1: nothing reaches this module"]


def test_a_module_may_wait_until_it_is_reached(tmp_path: Path) -> None:
    files = {"sim/engine.py": "import godwit.sim.heap", "sim/heap.py": "", "cli.py": ""}
    house = built(tmp_path, files)
    assert tidy.orphans(house, ENTRIES, {"godwit.sim.engine": "the protocols"}) == []
    assert tidy.orphans(house, ENTRIES, {"godwit.sim": "the protocols"}) == []
    assert tidy.orphans(house, ENTRIES, {"godwit.sim.engine": "the protocols", "godwit.sim.heap": "the same"}) == [
        "godwit.sim.heap does not wait any more: drop it from the list"
    ]


@pytest.mark.parametrize("name", ["godwit.sim", "godwit.sim.engine", "godwit.gone"])
def test_a_module_that_waits_no_more_is_found(tmp_path: Path, name: str) -> None:
    house = built(tmp_path, {"cli.py": "import godwit.sim.engine", "sim/engine.py": ""})
    assert tidy.orphans(house, ENTRIES, {name: "a reason"}) == [f"{name} does not wait any more: drop it from the list"]


def test_a_test_about_nothing_and_an_unused_helper_are_found(tmp_path: Path) -> None:
    built(tmp_path / "src", {"events.py": "", "tables/__init__.py": "", "tables/poset.py": ""})
    (tmp_path / "README.md").touch()
    for name, source in {
        "conftest.py": "",
        "test_events.py": "from tests.worlds import x",
        "test_tables.py": "",
        "tables/test_poset.py": "",
        "tables/test_poset_removal.py": "",
        "tables/test_forest.py": "",
        "tables/test_golden.py": "",
        "gone/test_golden.py": "",
        "test_possible.py": "",
        "test_readme.py": "",
        "worlds.py": "import tests.deeper",
        "deeper.py": "",
        "unused.py": "",
    }.items():
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    assert [finding.replace(f"{tmp_path / 'tests'}/", "") for finding in tidy.unmirrored(tmp_path)] == [
        "gone/test_golden.py:1: there is no gone/golden for this to test",
        "tables/test_forest.py:1: there is no tables/forest for this to test",
        "test_possible.py:1: there is no possible for this to test",
        "unused.py:1: no test uses this module",
    ]


def test_large_files_are_found_singly_and_data_together(tmp_path: Path) -> None:
    sizes = {"a.csv": 40, "b.png": 40, "code.py": 90, "big.py": 200}
    files = [tmp_path / name for name in sizes]
    for path in files:
        path.write_bytes(b"x" * sizes[path.name])
    assert tidy.too_large(files, bytes_max=100, data_bytes_max=80) == [f"{tmp_path}/big.py: 200 bytes, at most 100"]
    assert tidy.too_large(files, bytes_max=200, data_bytes_max=79) == ["data files: 80 bytes together, at most 79"]


def test_a_forbidden_word_is_found_in_any_file_and_case(tmp_path: Path) -> None:
    path = tmp_path / "notes.bin"
    path.write_bytes(b"\xff\nsee FORBIDDEN.example\n")
    assert tidy.naming([path], ["forbidden.example"]) == [f"{path}:2: names forbidden.example"]


def test_outside_of_a_repository_hidden_files_and_caches_do_not_count(tmp_path: Path) -> None:
    for name in ("a.py", ".hidden", ".cache/x", "__pycache__/a.pyc", "sub/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tidy.tracked(tmp_path)) == ["a.py", "sub/b.txt"]
