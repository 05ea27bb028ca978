"""Two distributions from one tree: together they are all of it, and each works in an empty environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.brokers import FREE, Process, own_ports, running
from tools import distributions

from godwit import __version__

SRC = distributions.ROOT / "src"
CLIENT_MAX = 15e6
BROKER_MAX = 200e6
MACHINE = re.compile(r"godwit/tables/compiled/machine\..*\.so")
"""What the build of the broker adds to the tree: the matcher as machine code."""

SHARED = ("godwit/net/", "godwit/protocols/")
"""Rooms of brokers, of which clients use some modules."""

ALL_OF_IT = """
import sys
import godwit.client.client, godwit.client.thread
"""

USE = """
import sys
import godwit

with godwit.connect(sys.argv[1], client="van-7") as van:
    readings = van.subscribe("pm25 > 150", topics="air/#")
    van.publish({"pm25": 42.0}, topic="air/a")
    van.publish({"pm25": 163.5, "engine": {"rpm": 900}}, topic="air/b")
    print(readings.next(30).attributes["engine.rpm"])
    try:
        godwit.Index
    except ImportError as error:
        print(error)
    try:
        godwit.parse
    except ImportError as error:
        print(error)
heavy = {"numpy", "numba", "pyarrow", "llvmlite", "sqlglot", "typer", "rich"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


MATCH = """
import sys
from godwit import Index, parse

index = Index()
index.add(7, parse("speed > 80 AND place LIKE 'north%'"))
index.add(8, parse("speed < 80"))
index.add(9, parse("within(lat, lon, 39.9, 116.4, 5km)"))
print(index.match({"speed": 90, "place": "north-7", "lat": 39.91, "lon": 116.41}).tolist())
print([name for name in ("numba", "llvmlite") if name in sys.modules])
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    with pytest.MonkeyPatch.context() as patch:
        # To compile it takes half a minute of a core, and the same function has made the clone's.
        patch.setenv("GODWIT_MACHINE", "clone")
        return distributions.build(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def client(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return distributions.install(["godwit-client"], wheels, tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def broker(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return distributions.install(["godwit-client", "godwit"], wheels, tmp_path_factory.mktemp("broker"))


def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        return [name for name in packed.namelist() if name.startswith("godwit/")]


def did(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Whatever PYTHONPATH leads to is not what the environment holds.
    return subprocess.run([python, "-E", *arguments], capture_output=True, text=True, cwd=python.parent, timeout=120)


def test_every_file_of_the_tree_is_in_exactly_one_of_them(wheels: dict[str, Path]) -> None:
    packed = sorted(name for wheel in wheels.values() for name in contents(wheel) if not MACHINE.fullmatch(name))
    tree = (path for path in (SRC / "godwit").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    names = (str(path.relative_to(SRC)) for path in tree)
    assert packed == sorted(name for name in names if not MACHINE.fullmatch(name))


def test_a_broker_is_installed_with_the_client_of_its_own_version() -> None:
    project = tomllib.loads((distributions.ROOT / "pyproject.toml").read_text())["project"]
    assert f"godwit-client=={__version__}" in project["dependencies"]


def test_of_shared_rooms_clients_have_what_they_import_and_nothing_more(client: Path, wheels: dict[str, Path]) -> None:
    listed = {name for name in contents(wheels["godwit-client"]) if name.startswith(SHARED) and name.endswith(".py")}
    imported = did(
        client, "-c", f"{ALL_OF_IT}\nprint(*(sys.modules[n].__file__ for n in sys.modules if n[:6] == 'godwit'))"
    )
    assert imported.returncode == 0, imported.stderr
    loaded = {f"godwit/{path.partition('/site-packages/godwit/')[2]}" for path in imported.stdout.split()}
    assert listed == {name for name in loaded if name.startswith(SHARED)}


def test_a_client_is_small_and_a_broker_has_no_spark_and_no_arrow(client: Path, broker: Path) -> None:
    assert distributions.taken(client.parent.parent / "lib") < CLIENT_MAX
    assert distributions.taken(broker.parent.parent / "lib") < BROKER_MAX
    (site,) = broker.parent.parent.glob("lib/python*/site-packages")
    assert {path.name for path in site.iterdir()} & {"numba", "pyarrow", "pyspark", "pandas", "scipy"} == set()


def test_a_broker_brings_the_machine_code_of_its_matcher(broker: Path, wheels: dict[str, Path]) -> None:
    assert len([name for name in contents(wheels["godwit"]) if MACHINE.fullmatch(name)]) == 1
    assert "none-any" not in wheels["godwit"].name
    told = did(broker, "-m", "godwit", "prepare")
    assert told.stdout == "all 16 functions came as machine code with the package: nothing is left to compile\n", (
        told.stderr
    )
    matched = did(broker, "-c", MATCH)
    assert matched.stdout.split() == ["[7,", "9]", "[]"], matched.stderr


def test_both_work_together_each_in_an_environment_of_its_own(client: Path, broker: Path, tmp_path: Path) -> None:
    north = Process(tmp_path, "north", *FREE, "--status", "127.0.0.1:0", python=broker)
    with running(north):
        told = did(client, "-c", USE, f"127.0.0.1:{north.port}")
    assert told.stdout.splitlines() == [
        "900",
        "godwit.Index needs godwit.tables, which is not installed: pip install godwit",
        "godwit.parse needs sqlglot, which is not installed: pip install 'godwit-client[filters]'",
        "[]",
    ], told.stderr


def test_a_broker_without_arrow_says_what_an_archive_and_files_need(broker: Path, tmp_path: Path) -> None:
    archive = did(broker, "-m", "godwit", "serve", *FREE, "--data", str(tmp_path), "--archive", str(tmp_path / "a"))
    needs = "godwit: archive.folder: an archive needs pyarrow: pip install 'godwit[arrow]'\n"
    assert (archive.returncode, archive.stderr) == (2, needs)
    match = did(broker, "-m", "godwit", "match", "events.jsonl", "subscriptions.jsonl")
    assert (match.returncode, match.stderr) == (2, "godwit: match needs pyarrow, which comes with godwit[arrow]\n")


def test_what_a_build_imports_is_named_by_the_project(tmp_path: Path) -> None:
    """A wheel is built where there is what `build-system` requires and nothing else, by pip or by the image."""
    project = tomllib.loads((distributions.ROOT / "pyproject.toml").read_text())
    named = {Requirement(line).name for line in project["build-system"]["requires"]}
    assert named | {"uv"} == {Requirement(line).name for line in project["dependency-groups"]["build"]}
    python = distributions.environment(distributions.needed(named), tmp_path / "build")
    code = f"import sys; sys.path.insert(0, {str(SRC)!r}); import godwit.tables.compiled.doors, hatchling.build"
    told = did(python, "-c", code)
    assert told.returncode == 0, told.stderr


IMAGE = (distributions.ROOT / "deploy" / "Dockerfile").read_text().rpartition("\nFROM ")[2]
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin") or ""
DEBIAN_PYTHON = Path("/usr/bin/python3.11")
"""The image runs this one, on the same Debian."""


OF_EVERY_IMAGE = ("libpthread", "libdl", "librt", "libutil", "libm", "libresolv", "libgcc_s", "libstdc++")
"""Libraries of C and C++, which wheels may count upon."""


def words(instruction: str) -> list[str]:
    """The command that an instruction of the image has."""
    (found,) = re.findall(rf"^{instruction} (\[.*\])$", IMAGE, re.MULTILINE)
    told: list[str] = json.loads(found)
    return told


def bare(root: Path, site: Path) -> None:
    """What the last stage of the image holds: Python with its libraries, and us. No shell, no other program."""
    for place in ("usr/bin", "var/lib", "tmp"):
        (root / place).mkdir(parents=True)
    shutil.copy(DEBIAN_PYTHON, root / "usr" / "bin" / "python3")
    library = Path("/usr/lib/python3.11")
    shutil.copytree(library, root / library.relative_to("/"), ignore=shutil.ignore_patterns("test"))
    base = [one for name in OF_EVERY_IMAGE for one in Path("/usr/lib").glob(f"*-linux-gnu/{name}.so.*[0-9]")]
    linked = [DEBIAN_PYTHON, *library.glob("lib-dynload/*.so"), *base]
    told = subprocess.run(["ldd", *linked], capture_output=True, text=True, check=True).stdout
    for name in {*re.findall(r"(/\S+\.so\S*) \(", told), *map(str, base)}:
        place = root / name.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, place)
    shutil.copytree(site, root / "opt" / "godwit")
    data = root / "var" / "lib" / "godwit"
    data.mkdir()
    os.chown(data, 65532, 65532)
    root.chmod(0o755)


@pytest.mark.skipif(
    os.geteuid() != 0 or not CHROOT or not DEBIAN_PYTHON.exists(), reason="only root may change its root"
)
def test_a_broker_runs_as_in_its_image_without_a_shell_and_without_root(broker: Path, tmp_path: Path) -> None:
    (site,) = broker.parent.parent.glob("lib/python*/site-packages")
    root = tmp_path / "root"
    bare(root, site)
    assert [one.name for one in (root / "usr" / "bin").iterdir()] == ["python3"]
    (user,) = re.findall(r"^USER (\d+)$", IMAGE, re.MULTILINE)
    settings = dict(re.findall(r"\b([A-Z_]+)=(\S+)", IMAGE))
    with own_ports(2) as (clients, status):
        settings |= {"GODWIT_LISTEN__MQTT": f"127.0.0.1:{clients}", "GODWIT_LISTEN__STATUS": f"127.0.0.1:{status}"}
        settings |= {"GODWIT_PEERS__LISTEN": "127.0.0.1:0"}
        inside = [CHROOT, f"--userspec={user}:{user}", str(root)]
        serve = [*inside, *words("ENTRYPOINT"), *words("CMD")]
        with (tmp_path / "log").open("wb") as log:
            running = subprocess.Popen(serve, env=settings, stdout=log, stderr=log)
        try:
            while subprocess.run([*inside, *words("    CMD")], env=settings, capture_output=True).returncode:
                assert running.poll() is None, (tmp_path / "log").read_text()
            running.terminate()
            assert running.wait(60) == 0, (tmp_path / "log").read_text()
        finally:
            running.kill()
            running.wait()
    kept = list((root / "var" / "lib" / "godwit").rglob("*"))
    assert {one.stat().st_uid for one in kept} == {65532}
