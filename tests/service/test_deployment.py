"""The files of deploy/ fit the program and each other."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from secretballot.cli import app
from secretballot.service.settings import read_settings

yaml = pytest.importorskip("yaml", reason="PyYAML")
ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SETTINGS = read_settings(DEPLOY / "service.toml")
PORT = SETTINGS.listen.port


def parsed(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def options_of(words):
    """Return the options of a command line of `secretballot serve start`, each a known one."""
    assert words[:2] == ["serve", "start"]
    verb = get_command(app)
    known = {name for one in verb.commands["serve"].commands["start"].params for name in one.opts}
    given = dict(zip(words[2::2], words[3::2], strict=True))
    assert set(given) <= known
    return given


def test_the_image_runs_the_service_as_nobody_of_importance():
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    last = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM")) :]
    (user,) = (line.split()[1] for line in last if line.startswith("USER"))
    # by number, so that Kubernetes can see that it is not root
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    assert f"--uid {user.split(':')[0]}" in text
    for line in lines:
        if line.startswith("COPY") and "--from" not in line:
            assert all((ROOT / source).exists() for source in shlex.split(line)[1:-1])
    (command,) = (line for line in last if line.startswith("CMD"))
    words = list(re.findall(r'"([^"]*)"', command))
    assert options_of(words)["--config"] == "/srv/secretballot/service.toml"
    assert f"EXPOSE {PORT}" in last
    assert f"127.0.0.1:{PORT}/health/live" in text


def test_the_compose_file_opens_the_proxy_alone_which_keeps_the_inside_in():
    (compose,) = parsed("compose.yaml")
    services = compose["services"]
    assert [name for name, one in services.items() if "ports" in one] == ["proxy"]
    assert "edge" not in services["db"]["networks"]
    assert compose["networks"]["inside"]["internal"] is True
    service = services["service"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    # a vault remembers where its ledger lies, so the folder is called the same inside
    ((outside, inside),) = (one.split(":") for one in service["volumes"])
    assert outside == inside == "/srv/secretballot"
    assert float(service["stop_grace_period"].rstrip("s")) > SETTINGS.listen.stop_seconds
    used = {name for one in services.values() for name in one.get("secrets", ())}
    assert used == set(compose["secrets"])
    assert not re.search(r"PASSWORD: *[^/\s]", (DEPLOY / "compose.yaml").read_text())
    proxy = (DEPLOY / "Caddyfile").read_text()
    assert f"reverse_proxy service:{PORT}" in proxy
    assert "/metrics /health/*" in proxy


def test_kubernetes_has_the_same_settings_and_probes(tmp_path):
    documents = {one["kind"]: one for one in parsed("kubernetes.yaml")}
    config = tmp_path / "service.toml"
    config.write_text(documents["ConfigMap"]["data"]["service.toml"])
    settings = read_settings(config)
    assert set(settings.datasets) == set(SETTINGS.datasets)
    assert settings.listen.host == "0.0.0.0"  # of a pod, behind a policy
    pod = documents["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    port = container["ports"][0]["containerPort"]
    assert port == settings.listen.port
    assert documents["NetworkPolicy"]["spec"]["ingress"][0]["ports"] == [{"port": port}]
    assert pod["securityContext"]["runAsNonRoot"] is True
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert set(mounted) == {one["name"] for one in pod["volumes"]}
    given = options_of(container["args"])
    assert given["--config"] == f"{mounted['settings']}/service.toml"
    assert str(settings.state).startswith(mounted["vault"])
    assert pod["terminationGracePeriodSeconds"] > settings.listen.stop_seconds
    # a vault is one machine's
    assert documents["StatefulSet"]["spec"]["replicas"] == 1
