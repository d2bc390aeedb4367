"""Commands and options of packages that are not installed: known, and said where they come from."""

import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import pytest
from made_up_pool import pool

import farthing as ft
from farthing import plugins
from farthing.bundle import folder
from farthing.cli import trying
from farthing.cli.commands import PACKAGES, PANELS
from farthing.errors import MissingPackageError, UnknownNameError
from farthing.methods.base import Dataset
from farthing.recommendation.candidates import candidates
from farthing_lab.cli import gateway_demo

Farthing = Callable[..., Any]
Refused = Callable[..., str]
SERVE = "farthing serve needs farthing-gateway; in a clone: pip install ./packages/farthing-gateway"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterable[None]:
    """Hide what the gateway and the lab register: commands, and how the packages meet."""
    found = metadata.entry_points

    def entry_points(group: str) -> list[metadata.EntryPoint]:
        if group in {"farthing.servers", "farthing.deciders"}:
            return []
        known = found(group=group)
        return [one for one in known if group != "farthing.commands" or one.name not in PACKAGES]

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    plugins._registered.cache_clear()
    yield
    plugins._registered.cache_clear()


def test_every_command_of_the_help_is_registered() -> None:
    assert {name for panel in PANELS.values() for name in panel} == set(plugins.names("commands"))


def test_help_is_the_same_without_the_other_packages(
    farthing: Farthing, request: pytest.FixtureRequest
) -> None:
    whole = farthing("--help").out
    request.getfixturevalue("alone")
    assert farthing("--help").out == whole


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "arguments", [("serve", "serve.toml"), ("serve", "--help"), ("serve",), ("serve", "--nothing")]
)
def test_a_command_that_is_not_installed_says_what_brings_it(
    refused: Refused, arguments: tuple[str, ...]
) -> None:
    assert refused(*arguments) == f"farthing: {SERVE}\n"


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("name", "package"), PACKAGES.items())
def test_each_one_names_its_package(refused: Refused, name: str, package: str) -> None:
    assert refused(name).endswith(
        f"farthing {name} needs {package}; in a clone: pip install ./packages/{package}\n"
    )


@pytest.mark.usefixtures("alone")
def test_the_demo_of_the_gateway_needs_the_gateway(tmp_path: Path) -> None:
    with pytest.raises(MissingPackageError, match="farthing demo --gateway needs farthing-gateway"):
        gateway_demo.play(tmp_path, stay=False)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("line", ["farthing ser", "farthing serve --"])
def test_the_tab_key_is_quiet_about_what_is_not_installed(
    farthing: Farthing, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("_FARTHING_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    done = farthing()
    assert (done.code, done.err) == (0, "")
    assert done.out.split() == (["serve"] if line.endswith("ser") else ["--help"])


@pytest.mark.usefixtures("alone")
def test_a_try_says_what_would_serve_its_bundle(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(folder, "write", lambda *_: None)
    found = cast("Any", type("Found", (), {"bundle": None}))
    said = trying._write(found, cast("Any", None), tmp_path)
    assert said.startswith(
        f"Next: farthing serve {tmp_path} needs farthing-gateway; in a clone: pip install "
    )


@pytest.mark.usefixtures("alone")
def test_an_unknown_name_may_be_one_of_the_lab() -> None:
    with pytest.raises(
        UnknownNameError, match=r"more come with farthing-lab; in a clone: pip install \./pack"
    ):
        plugins.load("tasks", "trivia")
    with pytest.raises(
        UnknownNameError, match=r"policy 'trivia'.*; more come with farthing-lab; in a"
    ):
        candidates(Dataset("nine", pool(9)), ["trivia"])
    with pytest.raises(MissingPackageError, match="decider 'controller' needs farthing-lab"):
        plugins.load("deciders", "controller")


@pytest.mark.parametrize("name", ["compare", "generate", "Shift"])
def test_a_name_of_the_lab_says_what_brings_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(ft), name, raising=False)
    monkeypatch.setitem(sys.modules, ft._LAB[name], None)
    said = f"^farthing.{name} needs farthing-lab; in a clone: pip install ./packages/farthing-lab$"
    with pytest.raises(ImportError, match=said):
        getattr(ft, name)


def test_what_a_module_of_the_lab_lacks_is_said_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(ft), "generate", raising=False)
    monkeypatch.delitem(sys.modules, ft._LAB["generate"], raising=False)
    monkeypatch.setitem(sys.modules, "farthing_lab.generator.generate", None)
    with pytest.raises(ModuleNotFoundError, match=r"farthing_lab\.generator\.generate"):
        _ = ft.generate
