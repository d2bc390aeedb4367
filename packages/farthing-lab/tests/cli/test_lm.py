"""`farthing lm`: what it lists, and what it refuses before anything is loaded."""

import json
from collections.abc import Callable
from typing import Any

from farthing_lab.models.embedded import known


def test_the_list_has_every_model_and_its_price(farthing: Callable[..., Any]) -> None:
    said = farthing("lm", "list").out
    for model in known():
        assert model.name in said
        assert f"{model.parameters:,}" in said


def test_the_list_as_json_is_what_is_known(farthing: Callable[..., Any]) -> None:
    listed = json.loads(farthing("lm", "list", "--json").out)
    assert [one["name"] for one in listed] == [model.name for model in known()]
    assert listed[0].keys() == {
        *("name", "meaning", "parameters"),
        *("input_per_million", "output_per_million"),
    }


def test_names_are_checked_before_a_model_is_loaded(refused: Callable[..., str]) -> None:
    assert "unknown embedded model 'smal'; did you mean 'small'" in refused(
        "lm", "serve", "--model", "smal", "--port", "0"
    )
    assert "two models are called 'small'" in refused(
        "lm", "serve", "--model", "small", "--path", "weights/small", "--port", "0"
    )
    assert "two folders have the same name" in refused(
        "lm", "serve", "--path", "a/tiny", "--path", "b/tiny", "--port", "0"
    )
    assert "nowhere: there is no such folder of weights; check the path" in refused(
        "lm", "serve", "--path", "nowhere", "--port", "0"
    )


def test_a_device_that_is_not_there_is_named(farthing: Callable[..., Any]) -> None:
    done = farthing("lm", "serve", "--model", "small", "--device", "tpu9", "--port", "0")
    assert (done.code, "device 'tpu9'" in done.err) == (2, True)
