"""A pool: a controller, the experts that it may call, its modes, and the questions.

Two pools ship, of embedded models: `two` (small, large) and `four` (sums and products as well). A
TOML file makes one of any models:

    [pool]
    task = "gsm8k"
    questions = "questions.jsonl"
    controller = "weights"           # a section of models, or a folder of weights

    [modes]                          # B(mode) in USD, the cheapest first
    low = 0.0002
    high = 0.002

    [models.cheap]                   # whom it may call; more sections as in a job
    provider = "openai-compatible"
    model = "gpt-4.1-nano"
    url = "https://api.openai.com/v1"
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec

from farthing import plugins
from farthing.errors import ConfigError, InputError
from farthing.models.config import ModelsConfig, models_from
from farthing.models.prices import Price, PriceTable, unpriced
from farthing.models.toml import convert, read_toml
from farthing.money import nano_from_usd
from farthing.tasks.base import Task
from farthing.tasks.questions import load_questions
from farthing.tasks.templates import asked
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import Expert, Mode
from farthing_lab.corl.episode import Rules
from farthing_lab.corl.questions import GeneratedQuestions, ListedQuestions
from farthing_lab.corl.syntax import Style
from farthing_lab.models.embedded import WEIGHTS, EmbeddedSettings
from farthing_lab.models.local import LocalSettings
from farthing_lab.models.weights import ADAPTER, folder_of
from farthing_lab.tasks.arithmetic import LONGEST, Kind, Recipe


@dataclass(frozen=True)
class ControllerPool:
    """Who may be called by whom, about what, for how much."""

    name: str
    """`two`, `four`, or the file, from the root on."""
    task: str
    questions: GeneratedQuestions | ListedQuestions
    models: ModelsConfig
    """The controller's section and the experts'."""
    modes: tuple[Mode, ...]
    """From the cheapest."""
    controller: str = CONTROLLER
    """Its section."""
    style: Style = "compact"
    most_turns: int = 3
    """M: how often the controller may write."""
    max_tokens: int = 200
    """Most tokens of a turn, and of an expert's reply."""
    hooks: tuple[str, ...] = ()
    """What the controller writes under: names of `farthing.logits_hooks`."""

    @property
    def experts(self) -> tuple[str, ...]:
        return tuple(name for name in self.models.sections if name != self.controller)

    @property
    def rules(self) -> Rules:
        """What all episodes have in common; raises like `price`."""
        experts = (Expert(name, str(self.price(name))) for name in self.experts)
        return Rules(tuple(experts), self.style, self.most_turns)

    def grader(self) -> Task:
        task: Task = plugins.load("tasks", self.task)
        return task

    def price(self, name: str) -> Price:
        settings = self.models.sections[name].settings
        price = settings.price(self.models.prices)
        if price is None:
            raise unpriced(settings.model)
        return price

    def weights(self) -> Path:
        found = Path(folder_of(self.weights_name()))
        if not any((found / file).is_file() for file in ("config.json", ADAPTER)):
            raise InputError(f"{found}: holds no weights of a controller; name another folder")
        return found

    def weights_name(self) -> str:
        """Return what the controller's weights are called: a folder, or `smollm2`."""
        settings = self.models.sections[self.controller].settings
        match settings:
            case EmbeddedSettings(model=name, folder=folder):
                return str((WEIGHTS if folder is None else Path(folder)) / name)
            case LocalSettings(path=path):
                return path
            case _:
                raise InputError(
                    f"the controller '{settings.model}' runs elsewhere; this needs its weights: "
                    "name a folder of them, or a section of the provider local or embedded"
                )

    def speaking(self, folder: Path) -> "ControllerPool":
        """Return the pool with other weights for its controller, at the same price."""
        before = self.models.sections[self.controller]
        settings = LocalSettings(model=before.settings.model, path=str(folder))
        prices = {**self.models.prices.own, settings.model: self.price(self.controller)}
        sections = {**self.models.sections, self.controller: replace(before, settings=settings)}
        models = replace(self.models, sections=sections, prices=PriceTable(prices))
        return replace(self, models=models)


BUILT_IN: dict[str, tuple[tuple[str, ...], tuple[Kind, ...], range]] = {
    "two": (("small", "large"), ("affine",), range(1, 7)),
    "four": (
        ("small", "large", "sums", "products"),
        ("affine",) * 6 + ("sums", "products"),
        range(1, LONGEST + 1),
    ),
}
"""Experts, kinds and lengths of the pools that ship. In `four` three of four questions are affine,
so that the dearest expert is the best one alone, as it mostly is."""
MODES = {
    "two": (73_800, 86_200, 1_170_900),
    "four": (69_400, 146_125, 3_081_650),
}
"""B(mode) of low, medium and high, in nano-dollars: those that `population.chosen_modes` chooses on
the questions on which an evaluation chooses plans."""
NAMES = ("low", "medium", "high")


def built_in(name: str, weights: Path = WEIGHTS) -> ControllerPool:
    """Return a pool that ships, `two` or `four`; its models lie in a folder.

    >>> pool = built_in("two")
    >>> pool.experts, [mode.name for mode in pool.modes]
    (('small', 'large'), ['low', 'medium', 'high'])
    """
    experts, kinds, hops = BUILT_IN[name]
    folder = {} if weights == WEIGHTS else {"folder": str(weights)}
    sections = {
        one: {"provider": "embedded", "model": one, "batch": 256, **folder}
        for one in (*experts, CONTROLLER)
    }
    recipes = tuple(Recipe(kind, length) for kind in kinds for length in hops)
    modes = tuple(map(Mode, NAMES, MODES[name]))
    models = models_from({"models": sections}, f"the pool {name}")
    return ControllerPool(name, "arithmetic", GeneratedQuestions(recipes), models, modes)


def find(name: str) -> ControllerPool:
    """Return a pool that ships, or that of a file; raises like `read_pool`."""
    if name in BUILT_IN:
        return built_in(name)
    if not name.endswith(".toml"):
        raise InputError(f"the pool is '{name}'; give {', '.join(BUILT_IN)}, or a TOML file")
    return read_pool(Path(name))


class _PoolSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `[pool]`."""

    task: str
    questions: str
    controller: str
    style: Style = "plain"
    most_turns: Annotated[int, msgspec.Meta(ge=1)] = 4
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 200


def read_pool(file: Path) -> ControllerPool:
    """Read a pool from a TOML file; paths are relative to it."""
    tables, named = read_toml(file), str(file)
    known = {"pool", "modes", "models", "limits", "prices"}
    if unknown := sorted(tables.keys() - known):
        sections = ", ".join(f"[{name}]" for name in sorted(known))
        raise ConfigError(named, unknown[0], f"there is no such section; use {sections}")
    section = convert(tables.get("pool", {}), _PoolSection, named, "pool")
    models = models_from(tables, named, file.absolute().parent)
    controller = section.controller
    if controller not in models.sections:
        models = _with_folder(models, file.parent / controller, named)
        controller = CONTROLLER
    questions = [
        replace(question, text=asked(question), choices=())
        for question in load_questions(section.task, file.parent / section.questions)
    ]
    pool = ControllerPool(
        name=str(file.resolve()),
        task=section.task,
        questions=ListedQuestions(tuple(questions)),
        models=models,
        modes=_modes(tables.get("modes", {}), named),
        controller=controller,
        style=section.style,
        most_turns=section.most_turns,
        max_tokens=section.max_tokens,
    )
    if not pool.experts:
        raise ConfigError(named, "models", "there is no expert; add a section [models.NAME]")
    return pool


def _with_folder(models: ModelsConfig, folder: Path, file: str) -> ModelsConfig:
    if not folder.is_dir():
        problem = f"is neither a section of models nor a folder ({folder}); name one"
        raise ConfigError(file, "pool.controller", problem)
    if CONTROLLER in models.sections:
        problem = f"is a folder, and there is a section [models.{CONTROLLER}]; rename that"
        raise ConfigError(file, "pool.controller", problem)
    section = models_from(
        {"models": {CONTROLLER: {"provider": "local", "model": CONTROLLER, "path": str(folder)}}},
        file,
    ).sections
    return replace(models, sections={**models.sections, **section})


def _modes(table: object, file: str) -> tuple[Mode, ...]:
    budgets = convert(table, dict[str, Annotated[float, msgspec.Meta(ge=0)]], file, "modes")
    if not budgets:
        raise ConfigError(file, "modes", "there is none; add for instance low = 0.0002")
    modes = tuple(Mode(name, nano_from_usd(usd)) for name, usd in budgets.items())
    return tuple(sorted(modes, key=lambda mode: mode.budget_nano))
