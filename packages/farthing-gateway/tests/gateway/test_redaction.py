"""Hooks that take personal data out of texts."""

import time

import pytest

from farthing.errors import InputError
from farthing_gateway.recording.redaction import contacts, load_redaction


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("mail ann.b+c@mail.example.co.uk!", "mail [e-mail]!"),
        ("jürgen@müller.example", "[e-mail]"),
        ("call +1 (555) 123-4567 now", "call [phone] now"),
        ("call (555) 123-4567", "call [phone]"),
        ("0171 1234567 or 030/123456", "[phone] or [phone]"),
        ("555-123-4567", "[phone]"),
        ("4111111111111111", "[card]"),
        ("5500-0000-0000-0004.", "[card]."),
        ("378282246310005", "[card]"),
        ("key=sk-proj-abcd1234_x", "key=[key]"),
        ("ghp_abcdefghijklmnopqrst0123", "[key]"),
        ("AKIAIOSFODNN7EXAMPLE", "[key]"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "[key]"),
    ],
)
def test_what_says_who_somebody_is_goes(text: str, kept: str) -> None:
    assert contacts(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "4111111111111112 is no card",
        "What is 1234567890 * 3.14159265358979?",
        "12 + 30 - 4 = 38",
        "2026-11-22, 12:30:05",
        "@property def f(self): ...",
        "a task-force of the desk-bound",
        "pi is 3.141592653589793238",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert contacts(text) == text


def test_a_long_text_takes_no_long_time() -> None:
    began = time.process_time()
    for text in ("a" * 100_000, "1 " * 50_000, "0-" * 50_000, "a@" * 50_000, "a." * 50_000):
        contacts(text)
    assert time.process_time() - began < 5


def test_a_hook_is_named_by_module_and_function() -> None:
    assert load_redaction("farthing_gateway.recording.redaction:contacts") is contacts


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("contacts", "name it as module:function"),
        ("no_such_module:hook", "no_such_module cannot be imported"),
        ("farthing_gateway.recording.redaction:nothing", "has no function nothing"),
        ("farthing_gateway.recording.redaction:Redact.nothing", "has no function"),
    ],
)
def test_a_hook_that_is_not_there_is_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_redaction(name)
