"""What pages show that a command prints is what it prints."""

from pathlib import Path

import pytest
from rewrite import PAGES, abridged, blocks, rewritten

RUN = [page for page in PAGES if any(block.runs for block in blocks(page.read_text()))]


LONG = ("cli.md", "planners.md", "proofs.md", "try.md")
"""Pages whose commands take seconds: under `slow` each is run whole."""


def name(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", [page for page in RUN if page.name not in LONG], ids=name)
def test_a_page_shows_what_its_quick_commands_print(page: Path) -> None:
    text = page.read_text()
    assert rewritten(text, slow=False) == text, "docs/rewrite.py writes what is printed now"


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=name)
def test_a_page_shows_what_its_commands_print(page: Path) -> None:
    text = page.read_text()
    assert rewritten(text) == text, "docs/rewrite.py writes what is printed now"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_figures_come_out_of_a_run_or_have_a_date(page: Path) -> None:
    unfounded = [block.body for block in blocks(page.read_text()) if block.unfounded]
    assert not unfounded, "mark them, or date them below (docs/rewrite.py says how)"


PAGE = """# A page

```console
$ farthing generate --preset mmlu-llama2-7b --n 7 --out a.jsonl
wrote 8 generated questions
```

<!-- slow -->
```console
$ .venv/bin/farthing traces schema > schema.json
$ farthing traces info absent.jsonl    # fails
...

Something else
$ farthing generate --preset mmlu-llama2-7b --n 7
```
"""


def test_what_is_printed_takes_the_place_of_what_was_shown() -> None:
    quick, whole = rewritten(PAGE, slow=False), rewritten(PAGE)
    assert "wrote 7 generated questions of 4 rounds to a.jsonl\n```" in quick
    assert "Something else" in quick
    assert "> schema.json\n$ farthing traces info absent.jsonl    # fails\n" in whole
    assert "farthing: absent.jsonl: cannot be read" in whole
    assert "--out" in whole.rpartition("$ farthing")[2]  # what is left silent has to be silent
    assert rewritten(whole) == whole


def test_whole_paragraphs_are_left_out() -> None:
    said = "a\nb\n\nc\n\nd\n\ne\n"
    assert abridged(said, "x\n") == said
    assert abridged(said, "x\n\n...\n\ny\n") == "a\nb\n\n...\n\ne\n"
    assert abridged(said, "x\n\ny\n\n...\n") == "a\nb\n\nc\n\n...\n"
    assert abridged(said, "...\n") == "...\n"


@pytest.mark.parametrize(
    ("text", "unfounded"),
    [
        ("```console\n$ farthing methods\n41 %\n```\n", False),
        ("<!-- slow -->\n```console\n$ farthing methods\n41 %\n```\n", False),
        ("<!-- not run: asks -->\n```console\n$ farthing methods\n41 %\n```\n", True),
        ("<!-- not run: asks -->\n```console\n$ farthing methods\nsome\n```\n", False),
        ("<!-- not run: asks -->\n```console\n$ farthing ask --cost $1\n```\n", False),
        ("```text\n0.125\n```\n\nPrinted by hand\n", True),
        ("```text\n0.125\n```\n\nPrinted on 2026-11-23 at commit 0710b99.\n", False),
    ],
)
def test_figures_without_a_run_need_a_date(text: str, unfounded: bool) -> None:
    (block,) = blocks(text)
    assert block.unfounded == unfounded
