"""The language models that ship with the package: what they are, what they cost, how they open.

A folder holds them: `models.json`, a list of what is known of each, and for each a folder of its
name as the transformers library writes it. To list them needs neither PyTorch nor weights.
"""

from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from farthing.errors import InputError, UnknownNameError
from farthing.models.prices import Price, PriceTable, Rates, TokenPrice
from farthing_lab.models.local import BATCH, LocalModel, LocalSettings

WEIGHTS = Path(__file__).with_name("weights")
"""The package's own folder."""


class Embedded(msgspec.Struct, frozen=True):
    """What is known of one model."""

    name: str
    meaning: str
    """One line: what it is good at."""
    input_per_million: Annotated[float, msgspec.Meta(ge=0)]
    """USD per million tokens that it reads."""
    output_per_million: Annotated[float, msgspec.Meta(ge=0)]
    """USD per million tokens that it writes."""
    parameters: int
    """Numbers that it has learned."""

    @property
    def price(self) -> TokenPrice:
        """What it costs where the user names no price."""
        rates = Rates(_exact(self.input_per_million), _exact(self.output_per_million))
        return TokenPrice((rates,))


@cache
def known(folder: Path = WEIGHTS) -> tuple[Embedded, ...]:
    """Return the models that there are.

    >>> sorted(model.name for model in known())
    ['controller', 'large', 'products', 'small', 'sums']
    """
    file = folder / "models.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=tuple[Embedded, ...])
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = str(error)
    raise InputError(f"{file}: is no list of embedded models ({problem}); check the folder")


def find(name: str, folder: Path = WEIGHTS) -> Embedded:
    """Return the model of this name.

    >>> find("smal")
    Traceback (most recent call last):
    farthing.errors.UnknownNameError: unknown embedded model 'smal'; did you mean 'small'? \
Known: controller, large, products, small, sums
    """
    models = {model.name: model for model in known(folder)}
    if name not in models:
        raise UnknownNameError("embedded model", name, models)
    return models[name]


class EmbeddedSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of an embedded model, as a configuration file gives them."""

    paths: ClassVar = ("folder",)

    model: str
    """Its name; prices and traces call it so."""
    folder: str | None = None
    """Folder of models of your own, as `farthing lm train` writes it; none: the package's."""
    device: str = "cpu"
    """Where it runs: `cpu`, `cuda`, `cuda:1`, ..."""
    timeout_s: float = 600.0
    """Most seconds of a call, after which it stops with what it has."""
    batch: Annotated[int, msgspec.Meta(ge=1)] = BATCH
    """Most prompts that are answered together."""

    def __post_init__(self) -> None:
        try:
            find(self.model, self._folder)
        except InputError as error:
            raise ValueError(str(error)) from None  # so that the file and the field are named

    @property
    def _folder(self) -> Path:
        return WEIGHTS if self.folder is None else Path(self.folder)

    def price(self, prices: PriceTable) -> Price:
        return prices.find(self.model) or find(self.model, self._folder).price

    def open(self, prices: PriceTable) -> LocalModel:
        price = self.price(prices)
        local = LocalSettings(
            model=self.model,
            path=str(self._folder / self.model),
            device=self.device,
            timeout_s=self.timeout_s,
            batch=self.batch,
        )
        return local.open(PriceTable({self.model: price}))


def _exact(usd: float) -> Decimal:
    return Decimal(repr(float(usd)))
