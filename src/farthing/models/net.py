"""The address that a server listens at."""

import socket

from farthing.errors import InputError


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 takes a free one.

    Raises:
        InputError: the address is taken or none of this machine's.
    """
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=kind, backlog=2_048)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{host}, port {port}: {why}; give others with --host, --port") from None


def shown(listening: socket.socket) -> str:
    """Return the address of a bound socket as clients take it.

    >>> with bind("127.0.0.1", 0) as one:
    ...     shown(one) == f"http://127.0.0.1:{one.getsockname()[1]}/v1"
    True
    """
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"
