"""What of a text may be kept: hooks that take personal data out before anything is written.

A hook is a function from a text to the text that may be kept. The configuration names one as
`module:function`; `farthing.gateway.redaction:contacts` comes with Farthing.
"""

from collections.abc import Callable
from importlib import import_module

from farthing.errors import InputError

Redact = Callable[[str], str]


def load_redaction(name: str) -> Redact:
    """Load a hook.

    Args:
        name: the module that it is in and its name, such as `my_company.privacy:without_names`.

    Raises:
        InputError: there is no such function.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise InputError(f"the redaction '{name}' is none; name it as module:function")
    try:
        found = getattr(import_module(module), function, None)
    except Exception as problem:
        raise InputError(
            f"the redaction '{name}': {module} cannot be imported ({problem}); install it, or "
            "check the name"
        ) from problem
    if not callable(found):
        raise InputError(f"the redaction '{name}': {module} has no function {function}")
    hook: Redact = found
    return hook
