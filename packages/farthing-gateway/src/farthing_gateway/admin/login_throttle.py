"""How often somebody may try to log in: a few times a minute, from one address and in total.

Nobody guesses 256 random bits; this keeps tries from costing the gateway its time, and shows in the
log. Failed tries alone count, in the memory of a worker.
"""

import ipaddress
from collections import deque
from dataclasses import dataclass, field

OF_ADDRESS = 5
IN_TOTAL = 50
WITHIN_S = 60.0


@dataclass
class Attempts:
    """The failed tries of the last minute."""

    of_address: int = OF_ADDRESS
    in_total: int = IN_TOTAL
    within_s: float = WITHIN_S
    _failed: deque[tuple[float, str]] = field(default_factory=deque)

    def wait_s(self, address: str, now: float) -> float:
        """Return how many seconds this address has to wait before it may try; 0: none.

        >>> attempts = Attempts(of_address=2)
        >>> for at in (0.0, 10.0):
        ...     attempts.failed("192.0.2.1", at)
        >>> attempts.wait_s("192.0.2.1", 15.0), attempts.wait_s("192.0.2.9", 15.0)
        (45.0, 0.0)
        """
        while self._failed and self._failed[0][0] <= now - self.within_s:
            self._failed.popleft()
        own = [at for at, one in self._failed if one == network_of(address)]
        waits = [0.0]
        if len(own) >= self.of_address:
            waits.append(own[-self.of_address] + self.within_s - now)
        if len(self._failed) >= self.in_total:
            waits.append(self._failed[-self.in_total][0] + self.within_s - now)
        return max(waits)

    def failed(self, address: str, now: float) -> None:
        """Count a try as failed; it counts from its beginning, so that many at once are many."""
        self._failed.append((now, network_of(address)))

    def succeeded(self, address: str) -> None:
        """Take the last try of an address back: it did not fail."""
        network = network_of(address)
        last = next(one for one in reversed(self._failed) if one[1] == network)
        self._failed.remove(last)


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the network that a household is given.

    >>> network_of("192.0.2.1"), network_of("2001:db8::1"), network_of("unix")
    ('192.0.2.1', '2001:db8::/64', 'unix')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    return str(ipaddress.IPv6Network((int(parsed), 64), strict=False))
