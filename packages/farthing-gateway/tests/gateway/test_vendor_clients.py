"""The vendors' own clients ask for embeddings, completions, responses and messages.

Of a provider that speaks them, of a model that speaks chats alone, and of a policy.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import gateway
from native_upstream import SAID, NativeProvider
from policy_running import SYSTEM, config, letter, made_bundle

ANSWER = "The answer is B."
NATIVE = """
[models.native]
provider = "openai-compatible"
model = "m-2026"
url = "{url}"
apis = ["completions", "embeddings", "responses", "messages"]

[prices."m-2026"]
input_per_million = 1
output_per_million = 2
"""
ASKED = [("native", SAID), ("small", ANSWER), ("farthing/letters", ANSWER)]
"""Who is asked, and what that says."""
TOOL = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("vendors")
    made_bundle(folder)
    with NativeProvider() as provider, Endpoint(letter) as stub:
        text = config(stub, folder / "bundle").replace("retries =", "apis = []\nretries =")
        with gateway(folder, text + NATIVE.format(url=provider.url)) as running:
            yield running.url


def openai(url: str) -> Any:
    return import_module("openai").OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def anthropic(url: str) -> Any:
    return import_module("anthropic").Anthropic(base_url=url, api_key="any", max_retries=0)


@pytest.mark.clients
@pytest.mark.extras("openai")
def test_openai_embeds(url: str) -> None:
    with openai(url) as client:
        found = client.embeddings.create(model="native", input=["a"], encoding_format="float")
        assert found.data[0].embedding == [0.25, -0.5]
        assert found.farthing["cost_nano"] == 5_000


@pytest.mark.clients
@pytest.mark.extras("openai")
@pytest.mark.parametrize(("model", "said"), ASKED[:2])
def test_openai_completes(url: str, model: str, said: str) -> None:
    with openai(url) as client:
        asked: dict[str, Any] = {"model": model, "prompt": "number 7", "max_tokens": 50}
        assert client.completions.create(**asked).choices[0].text == said
        pieces = list(client.completions.create(**asked, stream=True))
        assert "".join(p.choices[0].text for p in pieces if p.choices) == said


@pytest.mark.clients
@pytest.mark.extras("openai")
@pytest.mark.parametrize(("model", "said"), ASKED)
def test_openai_asks_for_responses(url: str, model: str, said: str) -> None:
    with openai(url) as client:
        asked: dict[str, Any] = {"model": model, "instructions": SYSTEM, "input": "number 7"}
        whole = client.responses.create(**asked)
        assert (whole.status, whole.output_text) == ("completed", said)
        assert whole.usage.output_tokens > 0
        with client.responses.stream(**asked) as stream:
            texts = [e.delta for e in stream if e.type == "response.output_text.delta"]
            assert "".join(texts) == said
            assert stream.get_final_response().output_text == said


@pytest.mark.clients
@pytest.mark.extras("openai")
def test_tools_and_formats_of_responses_pass(url: str) -> None:
    tools = [{"type": "function", **TOOL, "strict": False}]
    formats = {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}
    with openai(url) as client:
        whole = client.responses.create(model="native", input="x", tools=tools, text=formats)
        assert whole.output_text == SAID
        refused = import_module("openai").BadRequestError
        with pytest.raises(refused, match="previous_response_id"):
            client.responses.create(model="native", input="x", previous_response_id="resp_1")


@pytest.mark.clients
@pytest.mark.extras("anthropic")
@pytest.mark.parametrize(("model", "said"), ASKED)
def test_anthropic_asks_for_messages(url: str, model: str, said: str) -> None:
    with anthropic(url) as client:
        asked: dict[str, Any] = {
            "model": model,
            "max_tokens": 50,
            "system": SYSTEM,
            "messages": [{"role": "user", "content": "number 7"}],
        }
        whole = client.messages.create(**asked)
        assert (whole.content[0].text, whole.stop_reason) == (said, "end_turn")
        assert whole.usage.output_tokens > 0
        with client.messages.stream(**asked) as stream:
            assert "".join(stream.text_stream) == said
            assert stream.get_final_message().usage.output_tokens > 0


@pytest.mark.clients
@pytest.mark.extras("anthropic")
def test_tools_of_messages_pass_and_errors_are_anthropics(url: str) -> None:
    tool = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
    asked: dict[str, Any] = {"max_tokens": 50, "messages": [{"role": "user", "content": "x"}]}
    with anthropic(url) as client:
        assert client.messages.create(model="native", tools=[tool], **asked).content[0].text == SAID
        with pytest.raises(import_module("anthropic").NotFoundError, match="no model 'none'"):
            client.messages.create(model="none", **asked)
        with pytest.raises(import_module("anthropic").BadRequestError, match="tools"):
            client.messages.create(model="small", tools=[tool], **asked)
