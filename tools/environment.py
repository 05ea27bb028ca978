"""Make `.venv` hold what the lock says: `python tools/environment.py core` for running, `dev` for working on the code.

Standard library only, since it runs before anything is installed. uv reads the lock and pip fetches, because pip is
what a machine's mirror, proxy and certificates are set up for. Nothing is uninstalled, so `core` after `dev` keeps all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PYTHON = BIN / "python"
PROMTOOL = BIN / "promtool"
NODE_MODULES = BIN.parent / "npm" / "node_modules"

WANTED = {
    "core": ("--no-default-groups", "--extra", "arrow", "--extra", "jit"),
    "dev": ("--group", "dev", "--all-extras"),
}
"""What uv writes out for each set; `dev` contains `core`."""

NODE_PACKAGES = {"mqtt": "mqtt@5.16.0", "dclint": "dclint@3.1.0"}
"""Packages of npm for tests, each with what is pinned: another client, and what checks compose files."""

OTHERS = {"mosquitto-clients": "mosquitto_sub", "mosquitto": "mosquitto", "iproute2": "ip", "chromium": "chromium"}
"""Debian's packages for tests, each with a command that it brings."""


class SetupError(Exception):
    """The environment could not be made; the message says what was tried and what the tool answered."""


def main(arguments: Sequence[str]) -> int:
    if list(arguments) == ["promtool"]:
        unpack_promtool()
        return 0
    if len(arguments) != 1 or arguments[0] not in WANTED:
        print(f"usage: environment.py {' | '.join(WANTED)}", file=sys.stderr)
        return 2
    try:
        prepare(arguments[0])
    except SetupError as error:
        print(f"environment: {error}", file=sys.stderr)
        return 1
    return 0


def prepare(wanted: str) -> None:
    create()
    install_locked("uv", pinned("uv"))
    install_locked("build tools", export("--only-group", "build"))
    install_locked(f"{wanted} packages", export(*WANTED[wanted]))
    install("godwit itself", "--editable", str(ROOT / "deploy" / "client"), "--editable", str(ROOT), total=2)
    attempt("the matcher", [str(PYTHON), str(ROOT / "deploy" / "machine.py")], doing="compiling")
    if wanted == "dev":
        offer_other_clients()
    for satisfied in ("core", "dev") if wanted == "dev" else ("core",):
        (BIN.parent / f"{satisfied}.stamp").touch()
    say(f"ready ({wanted})")


def create() -> None:
    """A virtual environment of the calling Python, unless a working one is there already."""
    if PYTHON.exists() and subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    say(f"creating .venv with Python {sys.version.split()[0]}")
    venv.create(BIN.parent, with_pip=True, clear=True, symlinks=True)


def pinned(name: str) -> str:
    """The requirement line of one package as the lock pins it, read without uv."""
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    package = next(p for p in packages if p["name"] == name)
    files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
    return f"{name}=={package['version']} " + " ".join(f"--hash={file['hash']}" for file in files)


def export(*selection: str) -> str:
    """Requirement lines with hashes and without any address, so that pip looks where this machine looks."""
    command = [str(BIN / "uv"), "export", "--quiet", "--frozen", "--no-emit-workspace", "--no-header", "--no-annotate"]
    answer = subprocess.run(
        [*command, "--python", str(PYTHON), *selection], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise SetupError(f"uv could not read uv.lock:\n{answer.stderr}")
    return answer.stdout


def install_locked(what: str, requirements: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lines:
        lines.write(requirements)
        lines.flush()
        install(what, "--require-hashes", "--requirement", lines.name, total=requirements.count("=="))


def install(what: str, *arguments: str, total: int) -> None:
    """Install what is asked for and nothing else, showing on one line how far it is."""
    # Whatever builds a package is pinned too and installed one step earlier, hence no isolation.
    options = ("--no-deps", "--no-build-isolation", "--use-pep517", "--progress-bar", "off", "--no-input")
    environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
    command = [str(PYTHON), "-m", "pip", "install", *options, *arguments]
    say(f"installing {what}")
    heard: list[str] = []
    done = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as pip:
        for line in pip.stdout or ():
            heard.append(line)
            done += line.startswith(("Collecting", "Requirement already"))
            show(f"  {done} of {total}  {line.split(' (')[0].strip()[:60]}")
    show("")
    if pip.returncode:
        raise SetupError(f"pip could not install {what}; its last words:\n{''.join(heard[-15:])}")


def offer_other_clients() -> None:
    """Clients of others, what makes hosts of namespaces, a browser; without one its tests are skipped."""
    for package, command in OTHERS.items():
        known = shutil.which(command, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if known is None and shutil.which("apt-get") and os.geteuid() == 0:
            attempt(package, ["apt-get", "install", "--yes", "--no-install-recommends", package])
    if not PROMTOOL.exists() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        attempt("promtool", [sys.executable, str(Path(__file__).resolve()), "promtool"])
    if not all((NODE_MODULES / name).is_dir() for name in NODE_PACKAGES):
        offer_from_npm()


def unpack_promtool() -> None:
    """Out of Debian's package, which would start a server if it were installed."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["apt-get", "download", "prometheus"], cwd=scratch, check=True)
        (package,) = Path(scratch).glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "--extract", str(package), scratch], check=True)
        shutil.copy2(Path(scratch, "usr", "bin", "promtool"), PROMTOOL)


def offer_from_npm() -> None:
    """All of them whichever is missing: npm removes what it is not asked for."""
    pins = NODE_PACKAGES.values()
    if shutil.which("npm"):
        options = (
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--ignore-scripts",
            "--fetch-retries=1",
            "--fetch-timeout=20000",
        )
        attempt(" and ".join(pins), ["npm", "install", "--prefix", str(NODE_MODULES.parent), *options, *pins])


def attempt(what: str, command: Sequence[str], doing: str = "installing") -> None:
    say(f"{doing} {what}")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"going on without {what}: {error}")
        return
    if answer.returncode:
        say(f"going on without {what}: {(answer.stderr or answer.stdout).strip()[-300:]}")


def say(text: str) -> None:
    print(f"environment: {text}", flush=True)


def show(text: str) -> None:
    """A passing line, only where it can be wiped out again."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{text}", end="", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
