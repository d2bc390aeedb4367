"""Shows the examples in docstrings as the Python sessions that they are."""

import re
from typing import Any

from griffe import Docstring, Extension, Object

SESSION = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)
"""From a prompt to the next empty line."""


class Doctests(Extension):
    """Puts a fence around each session, without which Markdown would read it as a quotation."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of what was just read."""
        if isinstance(obj.docstring, Docstring):
            obj.docstring.value = SESSION.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
