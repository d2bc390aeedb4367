"""`farthing serve` with what cannot be served: one clear line, exit code 2, nothing started."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from farthing_gateway.config import read_config
from farthing_gateway.config_warnings import of_keys, remarks
from farthing_gateway.storage.keys import KeyRecord

Refused = Callable[..., str]
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
GOOD = """
[serve]
database = "farthing.db"
strongest = "large"

[models.large]
provider = "openai-compatible"
model = "large-2026"
url = "http://127.0.0.1:9/v1"

[prices]
"large-2026" = { input_per_million = 10, output_per_million = 20 }
"""
POLICY = """
[policies.mine]
pool = ["large"]
bundle = "bundle"
"""


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve nothing, should a mistake be missed."""

    def run(*_: object, **__: object) -> None:
        raise AssertionError("it was served")

    monkeypatch.setattr("farthing_gateway.workers.Workers.run", run)


def without(line: str) -> str:
    return "\n".join(one for one in GOOD.splitlines() if not one.startswith(line))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serve", "is not TOML"),
        ("", "serve: is missing"),
        (without("database"), "`database`"),
        (without("strongest"), "`strongest`"),
        (GOOD.replace('strongest = "large"', 'strongest = "huge"'), "names 'huge'"),
        (GOOD.replace("[serve]", "[serve]\nprot = 80"), "`prot`"),
        (GOOD + "[extra]\n", "extra: is unknown"),
        (GOOD.replace("[serve]", "[serve]\nport = 80000"), "65535"),
        (GOOD.replace("http://127.0.0.1:9/v1", ""), "`url` must look like"),
        (
            GOOD.replace("[prices]", 'key_env = "NO_SUCH_KEY"\n[prices]'),
            "serve.toml, models.large: the environment variable NO_SUCH_KEY",
        ),
        (
            without('"large-2026"'),
            "serve.toml, models.large: nothing says what the model 'large-2026' costs",
        ),
        (GOOD.replace("farthing.db", "no/such/folder/farthing.db"), "no/such/folder"),
        (GOOD + POLICY, "bundle"),
        (GOOD + '[record]\nredact = "no.such:function"\n', "no.such"),
        (GOOD + '[[budgets]]\nof = "all"\nper = "day"\n', "limits nothing; give usd"),
        (GOOD + '[[budgets]]\nof = "nobody"\nper = "day"\nusd = 1\n', "budgets[0].of: is 'nobody'"),
        (
            GOOD + '[[budgets]]\nof = "model:lrge"\nper = "day"\nusd = 1\n',
            "there is no model 'lrge'; did you mean 'large'?",
        ),
        (
            GOOD + '[[budgets]]\nof = "policy:mine"\nper = "day"\nusd = 1\n',
            "there is no policy 'mine': shadow",
        ),
        (GOOD + POLICY.replace("[policies.mine]", '[policies."my own"]'), "without spaces"),
        (GOOD + POLICY + 'trial = ["lage"]\n', "policies.mine.trial: names 'lage', which is no"),
        (
            GOOD + POLICY + "[policies.mine.pacing]\nusd_per_day = 1\nrequets = 9\n",
            "has no field `requets`; did you mean `requests`? there are usd_per_day",
        ),
        (GOOD + "[record]\nshares = 1\n", "did you mean `share`?"),
        (
            GOOD.replace('strongest = "large"', 'strongest = "huge"')
            + '[[budgets]]\nof = "me"\nper = "day"\nusd = 1\n',
            "here: large; and budgets[0].of: is 'me'",
        ),
        (GOOD + '[budgets]\nof = "all"\nper = "day"\nusd = 1\n', "budgets"),
    ],
    ids=lambda value: "" if "\n" in value or not value else value,
)
def test_what_cannot_be_served_is_one_line(
    refused: Refused, tmp_path: Path, text: str, said: str
) -> None:
    Path("serve.toml").write_text(text)
    Path("bundle").mkdir()
    Path("bundle/bundle.json").write_text("{")
    assert said in refused("serve", "serve.toml", "--port", "0")


@pytest.mark.parametrize("folder", [".", "..", "/", "empty"])
def test_a_folder_that_is_no_bundle_is_one_line(refused: Refused, folder: str) -> None:
    Path("empty").mkdir()
    assert "is a folder, and" in refused("serve", folder)


def test_a_file_that_is_not_there_is_one_line(refused: Refused) -> None:
    assert "absent.toml" in refused("serve", "absent.toml")


def test_an_address_that_is_taken_is_one_line(refused: Refused) -> None:
    Path("serve.toml").write_text(GOOD)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("serve", "serve.toml", "--port", port)
    assert f"127.0.0.1, port {port}: address already in use" in said


def test_what_can_be_served_and_is_doubtful_is_noted(refused: Refused) -> None:
    more = """
"small-2026" = { input_per_million = 1, output_per_million = 2 }
[models.small]
provider = "openai-compatible"
model = "small-2026"
url = "http://127.0.0.1:9/v1"
[policies.turned]
pool = ["large", "small"]
system = "Be brief."
[policies.lone]
pool = ["large"]
[[budgets]]
of = "team:web"
per = "day"
usd = 1
"""
    Path("serve.toml").write_text(GOOD + more)
    del refused  # it runs in a folder of its own
    read = read_config(Path("serve.toml"))
    said = "\n".join(remarks(read))
    assert (
        "policies.turned does not name its pool from the cheapest; by price it is small, large"
        in said
    )
    assert "policies.turned names no system" not in said
    assert "policies.lone has a pool of one model" in said
    assert "policies.lone names no system prompt" in said
    limited = "budgets[0] is of team:web, and no key is: it limits nothing yet"
    day = timedelta(days=1)
    key = KeyRecord("0123abcd", "ann", "web", frozenset(["call"]), (), (), NOON, None, NOON + day)
    assert of_keys(read, [], NOON) == of_keys(read, [key], NOON + day) == [limited]
    assert of_keys(read, [key], NOON) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[page]\nhttps = true\n", "it needs keys"),
        ("[policies.one]\npool = ['large']\naudit = 0.3\n", "nothing is audited without [record]"),
        (
            "[policies.one]\npool = ['large']\naudit = 0.3\n[record]\naudit_usd_per_day = 0\n",
            "audit_usd_per_day under [record] is 0",
        ),
    ],
)
def test_what_is_watched_by_nobody_is_noted(more: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    plain = GOOD.replace("[serve]", "[serve]\nkeys = false")
    file.write_text(plain)
    assert said not in "\n".join(remarks(read_config(file)))
    file.write_text(f"{plain}\n{more}")
    assert said in "\n".join(remarks(read_config(file)))
