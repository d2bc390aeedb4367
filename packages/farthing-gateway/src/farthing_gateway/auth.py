"""Whose request it is: its key, and what that key may do."""

from collections.abc import Mapping

from farthing_gateway.errors import forbidden, unknown_key
from farthing_gateway.storage.keys import KeyRecord, Keys, Scope


async def authenticate(
    keys: Keys | None, headers: Mapping[str, str], *scopes: Scope
) -> KeyRecord | None:
    """Return the key of a request; None where none is needed.

    Args:
        keys: those that open something; None: everybody may ask.
        headers: of the request, in small letters or any.
        scopes: what the key must allow, one of them; an admin's allows all.

    Raises:
        ApiError: it has no key that is valid, or one that may not do this.
    """
    if keys is None:
        return None
    kind, _, secret = headers.get("authorization", "").partition(" ")
    if not kind:  # as clients of Anthropic's API send it
        kind, secret = "bearer", headers.get("x-api-key", "")
    if kind.lower() != "bearer" or not secret.strip():
        raise unknown_key()
    key = await keys.find(secret.strip())
    if key is None:
        raise unknown_key()
    if not key.scopes & {*scopes, "admin"}:
        raise forbidden(f"do this; it needs the scope {' or '.join(scopes)}")
    return key
