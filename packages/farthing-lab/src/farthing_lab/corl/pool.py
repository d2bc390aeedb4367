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

Questions are drawn by recipes, or listed in a file. A trained controller is a folder: its weights,
its tokenizer, and a card that says how it was made.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from farthing import plugins
from farthing.errors import ConfigError, InputError
from farthing.models.config import ModelsConfig, models_from
from farthing.models.prices import Price, PriceTable, unpriced
from farthing.models.toml import convert, read_toml
from farthing.money import nano_from_usd
from farthing.tasks.base import Question, Task
from farthing.tasks.questions import load_questions
from farthing.tasks.templates import asked
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import Expert, Mode
from farthing_lab.corl.episode import Rules, Style
from farthing_lab.models.embedded import WEIGHTS, EmbeddedSettings
from farthing_lab.models.local import LocalSettings
from farthing_lab.models.weights import ADAPTER, folder_of
from farthing_lab.tasks.arithmetic import LONGEST, Kind, Part, Recipe, draw_of, part_of, solve

_Asked = tuple[str, tuple[str, ...], str]


def _asked(question: Question) -> _Asked:
    return question.text, question.gold, repr(question.beside)


@dataclass(frozen=True)
class GeneratedQuestions:
    """Chains of arithmetic, as many as wanted."""

    recipes: tuple[Recipe, ...]
    """Each is sampled as often as it stands here."""
    texts: ClassVar[tuple[str, ...]] = ()
    """None of others: what is drawn can be read."""

    def check(self, text: str) -> None:
        """Refuse what is no such question: the networks leave out symbols that they do not know."""
        solve(text)

    def draw(self, part: Part, generator: np.random.Generator) -> Question:
        """Draw one question of a part to learn from; rare recipes are drawn more than sampled.

        Each is drawn as often as the square root, rounded down, of how often it stands here: rare
        ones do not wait too long, and frequent ones do not lack practice.
        """
        counts = Counter(self.recipes)
        recipes = tuple(one for one, n in counts.items() for _ in range(isqrt(n)))
        return next(draw_of(part, recipes, generator)).question()

    def sample(self, part: Part, n: int, seed: int) -> list[Question]:
        """Return n questions of a part, no two alike: any prefix is mixed as the recipes are.

        >>> sums = GeneratedQuestions((Recipe("sums", 1), Recipe("sums", 2)))
        >>> some = sums.sample("test", 4, seed=0)
        >>> sorted(question.group for question in some)
        ['sums-1', 'sums-1', 'sums-2', 'sums-2']
        """
        found: dict[str, Question] = {}
        generator = np.random.default_rng(seed)
        while True:
            for at in generator.permutation(len(self.recipes)):
                question = next(draw_of(part, self.recipes[at : at + 1], generator)).question()
                found.setdefault(question.text, question)
                if len(found) == n:
                    return list(found.values())


@dataclass(frozen=True)
class ListedQuestions:
    """Questions of a file. Where it names no part, four of five train.

    Those that ask the same are in one part; one that names none follows.
    """

    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        marked: dict[_Asked, Question] = {}
        for one in self.questions:
            first = marked.setdefault(_asked(one), one) if one.split else one
            if first.split != one.split:
                raise InputError(
                    f"'{one.id}' is marked {one.split} and '{first.id}', which asks the same, "
                    f"{first.split}; mark both alike, or leave one out"
                )

    @property
    def texts(self) -> tuple[str, ...]:
        """What is asked: a controller may not have all of its symbols."""
        return tuple(one.text for one in self.questions)

    def check(self, text: str) -> None:
        """Take any question: nobody knows what these models can read."""

    def draw(self, part: Part, generator: np.random.Generator) -> Question:
        """Draw one question of a part; raises like `sample`."""
        some = self._of(part)
        return some[int(generator.integers(len(some)))]

    def sample(self, part: Part, n: int, seed: int) -> list[Question]:
        some = self._of(part)
        order = np.random.default_rng(seed).permutation(len(some))
        return [some[at] for at in order[:n]]

    def _of(self, part: Part) -> list[Question]:
        marked = {_asked(one): one.split for one in self.questions if one.split}
        some = [
            one for one in self.questions if (marked.get(_asked(one)) or part_of(one.text)) == part
        ]
        if not some:
            raise InputError(f"the file of questions has none to {part}; add some")
        return some


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
"""B(mode) of low, medium and high, in nano-dollars: those that `evaluation.chosen_modes` chooses on
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


CARD = "controller.json"
TRAINING = ".training"
"""What a training needs to go on, within the folder, while it is under way."""
SHIPPED = "corl-{}"
"""The folder of the controller of a pool that ships, beside the embedded models."""
DEFAULT = "four"
"""The pool, where none is named."""


class Card(msgspec.Struct, frozen=True):
    """What is known of a controller beside its weights."""

    pool: str
    """The name of a pool that ships, or its file."""
    modes_usd: dict[str, float]
    """B of each mode, the cheapest first."""
    style: Style
    most_turns: int
    call_cost_usd: dict[str, float]
    """What a call of each expert costs on average."""
    seed: int
    settings: dict[str, Any]
    """The reward, the course, and PPO's or GRPO's settings."""
    updates: list[dict[str, Any]]
    """A line an update."""
    stopped: str = ""
    """Why it stopped early; empty where it did not."""
    hooks: tuple[str, ...] = ()
    """What it learned under: names of `farthing.logits_hooks`."""

    @property
    def modes(self) -> tuple[Mode, ...]:
        return tuple(Mode(name, nano_from_usd(usd)) for name, usd in self.modes_usd.items())


def read_card(folder: Path) -> Card | None:
    """Return the card of a controller's folder; None where the weights have none."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of a controller; check the path")
    file = folder / CARD
    if not file.exists():
        if (folder / TRAINING).is_dir():
            raise InputError(
                f"{folder}: holds a training that is not over; the command that began it goes on"
            )
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=Card)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: is no card of a controller ({error})") from None


@dataclass(frozen=True)
class PoolController:
    """A controller in its pool."""

    pool: ControllerPool
    card: Card | None


def pool_of(folder: Path | None, name: str | None, weights: Path = WEIGHTS) -> PoolController:
    """Return the pool that a controller plays in: of this name, else the one it was trained in.

    Without a folder it is the pool's own controller, which for `two` and `four` lies in `weights`.
    """
    if folder is None:
        own = weights / SHIPPED.format(name or DEFAULT)
        if not own.is_dir():
            return PoolController(find(name or DEFAULT), None)
        folder = own
    card = read_card(folder)
    if card is None:
        return PoolController(find(name or DEFAULT).speaking(folder), None)
    pool = replace(_pool_with(card, folder, name), hooks=card.hooks)
    if card.pool == pool.name:
        pool = replace(pool, modes=card.modes, style=card.style, most_turns=card.most_turns)
    return PoolController(pool.speaking(folder), card)


def _pool_with(card: Card, folder: Path, name: str | None) -> ControllerPool:
    """Return the pool of a name, or the card's own, with all experts that its controller knows."""
    if name is None and card.pool not in BUILT_IN and not Path(card.pool).is_file():
        raise InputError(
            f"{folder}: learned in the pool {card.pool}, which is not there; name one with --pool"
        )
    pool = find(name or card.pool)
    if unknown := sorted(card.call_cost_usd.keys() - set(pool.experts)):
        raise InputError(
            f"{folder}: learned to call {', '.join(unknown)}, and the pool {pool.name} has "
            f"{', '.join(pool.experts)}; name another pool, or train a controller in this one"
        )
    return pool


def pool_to_train(name: str, folder: Path | None, style: Style | None) -> ControllerPool:
    """Return a pool with other weights to begin with, or another style, where these are given."""
    pool = find(name)
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder of weights; check the path")
        pool = pool.speaking(folder)
    return pool if style is None else replace(pool, style=style)


def check_out(out: Path) -> None:
    """Refuse a folder that holds anything but a training that is under way."""
    if (out / CARD).exists():
        raise InputError(f"{out}: holds a controller already; name another folder")
    if out.is_dir() and any(out.iterdir()) and not (out / TRAINING).is_dir():
        raise InputError(f"{out}: is not empty; name another folder")


def settle(made: Path, out: Path, last: Sequence[str] = (CARD,)) -> None:
    """Move files into a folder, those that say that it is whole at the end."""
    names = sorted((file.name for file in made.iterdir()), key=lambda name: (name in last, name))
    for name in names:
        (made / name).replace(out / name)
