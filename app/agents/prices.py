"""Estimates what tokens cost, by prices that are data: `prices.toml` and the operator's own."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.model.updates import Tokens

logger = logging.getLogger(__name__)

KNOWN: Final = Path(__file__).with_name("prices.toml")
OWN: Final = "prices.toml"
"""The operator's file in DATA_DIR."""
MILLION: Final = 1_000_000


class Price(BaseModel):
    """What one model costs, in dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    """By default as much as input."""
    cache_write: float | None = Field(default=None, ge=0)


class PriceList(BaseModel):
    """Prices as a file has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: str = ""
    models: Mapping[str, Price] = Field(default_factory=dict)


class Prices:
    """What models cost."""

    def __init__(self, models: Mapping[str, Price]) -> None:
        self._models = models

    def estimate(self, model: str, tokens: Tokens) -> float | None:
        """Estimate what tokens of a model cost, in dollars; None if its price is not known."""
        named = [name for name in self._models if name in model.lower()]
        if not named:
            return None
        price = self._models[max(named, key=len)]
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        return (
            tokens.input * price.input
            + tokens.output * price.output
            + tokens.cache_read * read
            + tokens.cache_write * write
        ) / MILLION


def read_prices(shared_dir: Path) -> Prices:
    """Read the known prices and the operator's own, which win; a broken file is left out."""
    models = dict(PriceList.model_validate(tomllib.loads(KNOWN.read_text())).models)
    own = shared_dir / OWN
    try:
        models |= PriceList.model_validate(tomllib.loads(own.read_text())).models
    except FileNotFoundError:
        pass
    except (OSError, ValueError, ValidationError) as error:
        logger.warning("%s is not used: %s", own, str(error).splitlines()[0])
    return Prices({name.lower(): price for name, price in models.items()})
