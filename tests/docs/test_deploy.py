"""What is in `deploy` is right, as far as its own linters and schemas can say, and names settings that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from tests.charts import documents
from tests.pages import ROOT, blocks, page
from tools.environment import NODE_MODULES, PROMTOOL
from typer.main import get_command

from godwit import __version__
from godwit.cli import app
from godwit.net.config import load

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "godwit"
HELM = Path(sys.executable).with_name("helm")
needs_helm = pytest.mark.skipif(not HELM.exists(), reason="helm could not be had")
DCLINT = NODE_MODULES / ".bin" / "dclint"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def values(**changed: Any) -> dict[str, Any]:
    told: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return told | changed


def checked(settings: dict[str, str], tmp_path: Path) -> None:
    """A broker takes these settings; what they name by file is there."""
    (tmp_path / "secret").write_text("a secret of the cluster")
    (tmp_path / "users.toml").touch()
    for key, name in (("GODWIT_PEERS__SECRET_FILE", "secret"), ("GODWIT_ACCESS__USERS", "users.toml")):
        if key in settings:
            settings[key] = str(tmp_path / name)
    load(None, {}, settings)


def test_the_file_of_the_page_is_one_that_brokers_take(tmp_path: Path) -> None:
    (told,) = blocks(page("docs/deploy.md"), "toml")
    file = tmp_path / "godwit.toml"
    file.write_text(told)
    (tmp_path / "cluster.secret").write_text("a secret of the cluster")
    (tmp_path / "users.toml").touch()
    assert load(file, {}, {"GODWIT_NAME": "pi-07"}).name == "pi-07"


def test_commands_and_files_of_the_page_are_there() -> None:
    text = page("docs/deploy.md")
    for path in re.findall(r"\bdeploy/[\w./-]+\w", text):
        assert (ROOT / path).exists() or path == "deploy/cluster.secret" or list(ROOT.glob(f"{path}*")), path
    known = {command.name or "" for command in get_command(app).commands.values()}  # type: ignore[attr-defined]
    for line in "".join(blocks(text, "sh")).splitlines():
        if line.startswith("godwit "):
            assert line.split()[1] in known


def test_hadolint_finds_nothing_wrong_with_the_dockerfile() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(not PROMTOOL.exists(), reason="promtool could not be had")
def test_promtool_finds_nothing_wrong_with_the_alert_rules() -> None:
    command: list[str | Path] = [
        PROMTOOL,
        "check",
        "rules",
        "--lint=all",
        "--lint-fatal",
        DEPLOY / "prometheus" / "alerts.yaml",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "SUCCESS" in done.stdout


@pytest.mark.skipif(not DCLINT.exists(), reason="dclint could not be had")
def test_dclint_finds_no_error_in_the_composition() -> None:
    """Its warnings are on the order of keys and on quotes, of which YAML has more than one style."""
    told = subprocess.run([DCLINT, "--formatter", "json", DEPLOY / "compose.yaml"], capture_output=True, text=True)
    (found,) = json.loads(told.stdout)
    assert found["errorCount"] == 0, [one for one in found["messages"] if one["type"] == "error"]
    assert {one["rule"] for one in found["messages"]} <= {
        "no-quotes-in-volumes",
        "require-quotes-in-ports",
        "service-keys-order",
        "top-level-properties-order",
    }


def test_the_image_has_two_stages_no_root_and_no_shell() -> None:
    last = DOCKERFILE.rpartition("\nFROM ")[2]
    assert DOCKERFILE.count("\nFROM ") == 2
    assert "USER 65532" in last
    for line in re.findall(r"^(?:RUN|CMD|ENTRYPOINT|    CMD) (.*)$", DOCKERFILE, re.MULTILINE):
        assert isinstance(json.loads(line), list), f"{line}: this form needs a shell"


def test_the_image_copies_files_that_are_there_and_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists()
            assert name in kept


def test_settings_of_the_image_are_settings_of_a_broker(tmp_path: Path) -> None:
    found = dict(re.findall(r"\b(GODWIT_\w+)=(\S+)", DOCKERFILE))
    assert {"GODWIT_DATA", "GODWIT_LISTEN__MQTT", "GODWIT_PEERS__LISTEN"} <= found.keys()
    checked({**found, "GODWIT_PEERS__SECRET_FILE": ""}, tmp_path)


def test_settings_of_the_composition_are_settings_of_a_broker(tmp_path: Path) -> None:
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(told["services"]) == {"north", "south", "west"} == set(told["volumes"])
    ports = [port for one in told["services"].values() for port in one["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports), "the users file lets anybody in"
    for name, one in told["services"].items():
        assert one["environment"]["GODWIT_NAME"] == name
        assert one["build"]["dockerfile"] == "deploy/Dockerfile"
        checked(dict(one["environment"]), tmp_path)
    for what in (*told["configs"].values(), *told["secrets"].values()):
        assert what["file"].startswith("./")


VALUES: list[dict[str, Any]] = [
    {},
    {"secrets": {"cluster": "c", "users": "", "tls": ""}},
    {
        "secrets": {"cluster": "c", "users": "u", "tls": "t"},
        "replicas": 20,
        "storage": {"size": "1Gi", "className": "fast"},
        "settings": {},
    },
]


@needs_helm
@pytest.mark.parametrize("more", VALUES)
def test_helm_finds_nothing_wrong_with_the_chart_and_makes_of_it_what_these_tests_do(
    more: dict[str, Any], tmp_path: Path
) -> None:
    """Its own linter; and what is known here of templates is an oracle for nothing unless Helm agrees."""
    told = tmp_path / "values.json"
    more = {name: value for name, value in more.items() if value}  # Helm adds the defaults to an empty table
    told.write_text(json.dumps(values(**more)))
    checked = subprocess.run([HELM, "lint", "--strict", "--values", told, CHART], capture_output=True, text=True)
    assert (checked.returncode, "0 chart(s) failed" in checked.stdout) == (0, True), checked.stdout
    command: list[str | Path] = [HELM, "template", "fleet", CHART, "--namespace", "brokers", "--values", told]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ours = {one["kind"] + one["metadata"]["name"]: one for one in documents(CHART, values(**more), "fleet", "brokers")}
    assert {one["kind"] + one["metadata"]["name"]: one for one in yaml.safe_load_all(made) if one} == ours


@pytest.mark.parametrize("more", VALUES)
def test_the_chart_makes_what_kubernetes_takes(more: dict[str, Any]) -> None:
    told = values(**more)
    jsonschema.validate(told, json.loads((CHART / "values.schema.json").read_text()))
    made = documents(CHART, told, "fleet", "brokers")
    for one in made:
        kubernetes_validate.validate(one, "1.31", strict=True)
    assert [one["kind"] for one in made] == ["PodDisruptionBudget", "Service", "Service", "StatefulSet"]


def test_what_the_chart_names_is_there(tmp_path: Path) -> None:
    *_, clients, peers, brokers = documents(
        CHART, values(secrets={"cluster": "c", "users": "u", "tls": ""}), "fleet", "brokers"
    )
    pod = brokers["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {one["name"] for one in container["ports"]}
    for service in (clients, peers):
        assert service["spec"]["selector"].items() <= brokers["spec"]["template"]["metadata"]["labels"].items()
        assert {one["targetPort"] for one in service["spec"]["ports"]} <= ports
    assert brokers["spec"]["serviceName"] == peers["metadata"]["name"]
    probes = {container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {"/live", "/ready"}
    volumes = {
        one["name"] for one in (*pod["volumes"], *(c["metadata"] for c in brokers["spec"]["volumeClaimTemplates"]))
    }
    assert {one["name"] for one in container["volumeMounts"]} == volumes
    settings = {one["name"]: one.get("value", "fleet-0") for one in container["env"]}
    assert settings["GODWIT_PEERS__CONNECT"].split(",")[0] == "fleet-0.fleet-peers.brokers.svc:7883"
    checked({"GODWIT_DATA": "/var/lib/godwit", **settings}, tmp_path)


def test_values_that_mean_nothing_are_refused() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    for wrong in (
        {"replicas": 0},
        {"settings": {"LISTEN": "1883"}},
        {"storage": {"size": "much", "className": ""}},
        {"x": 1},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values(**wrong), schema)


def test_the_chart_is_of_this_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == values()["image"]["tag"] == __version__
