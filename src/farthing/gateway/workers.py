"""The processes of a gateway that has several: one that fails is started again, others go on."""

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import defaultdict
from dataclasses import dataclass

from uvicorn.supervisors.multiprocess import Multiprocess, Process

from farthing.gateway.repeated_lines import summed_lines

LOG = logging.getLogger("farthing.gateway")
MOST_STARTS = 4
"""How often in a row each worker may fail where none ever served; then the gateway ends."""
FIRST_PAUSE_S = 1.0
"""Seconds before the second start; twice as many before each further one."""
LONGEST_PAUSE_S = 30.0
"""Of one that cannot be started."""
SHORT_PAUSE_S = 2.0
"""The longest pause of one that served and died: what killed it may never come again."""
STEADY_S = 30.0
"""A worker that served for so many seconds is started again at once."""
ANSWER_S = 0.5
"""Seconds that a worker is given to say whether it is ready; then it is asked again."""


IGNORED = (signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU)
"""Signals by which uvicorn's supervisor restarts, starts and ends workers of its own kind, and that
would end or stop a single process amid its requests."""


def set_signals() -> None:
    """Have signals end this process in order: the server has ended by then, or had not begun."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _ended)
    ignore_signals()


def ignore_signals() -> None:
    """Pass over what this process and those that it starts are not to heed."""
    for one in IGNORED:
        signal.signal(one, signal.SIG_IGN)


def _ended(*_: object) -> None:
    raise SystemExit(0)


class Worker(Process):
    """A process that serves, and ends with the one that started it."""

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the worker's process."""
        threading.Thread(target=_end_with_parent, daemon=True).start()
        set_signals()
        with summed_lines():
            super().target(sockets)


def _end_with_parent() -> None:
    """Ask this process to end, as its parent would have, once its parent is no more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class _Starts:
    """How one of the workers fares."""

    ready_at: float | None = None
    """When it was first ready since its last start, in `time.monotonic`."""
    failed: int = 0
    """How often in a row it could not be started, or ended soon after."""
    again_at: float | None = None
    """When it is started again, in `time.monotonic`; None: no start is waited for."""


class Workers(Multiprocess):
    """uvicorn's supervisor, which by itself ends all workers where one cannot be started."""

    @property
    def none_left(self) -> bool:
        """Whether no worker could be started."""
        failed = (self._starts[at].failed for at in range(len(self.processes)))
        return not self._served and all(times >= MOST_STARTS for times in failed)

    def init_processes(self) -> None:
        """Start all workers."""
        ignore_signals()
        self._starts: defaultdict[int, _Starts] = defaultdict(_Starts)
        self._served = False
        self.processes = [Worker(self.config, self.sockets) for _ in range(self.processes_num)]
        for process in self.processes:
            process.start()

    def keep_subprocess_alive(self) -> None:
        """Start workers again that have ended; end where none was ever ready."""
        for at, process in enumerate(self.processes):
            starts = self._starts[at]
            if self.should_exit.is_set():
                return
            if starts.again_at is not None:
                if time.monotonic() >= starts.again_at:
                    self._start(at)
            elif not self._goes_on(process, starts):
                process.kill()  # where it is there and says nothing
                process.join()
                self._ended(at)

    def _goes_on(self, process: Process, starts: _Starts) -> bool:
        """Return whether a worker serves, or still starts; note when it is ready."""
        if starts.ready_at is not None:
            return process.is_alive(self.config.timeout_worker_healthcheck)
        # Asked for a moment only: one that ends meanwhile would be waited for in vain.
        if process.exitcode is None and process.is_ready(ANSWER_S):
            starts.ready_at, self._served = time.monotonic(), True
        return process.exitcode is None

    def _start(self, at: int) -> None:
        self._starts[at] = _Starts(failed=self._starts[at].failed)
        self.processes[at] = Worker(self.config, self.sockets)
        self.processes[at].start()

    def _ended(self, at: int) -> None:
        """Start a worker again: at once where it served for long, else after a pause."""
        starts = self._starts[at]
        if starts.ready_at is not None and time.monotonic() - starts.ready_at >= STEADY_S:
            starts.failed = 0
            self._start(at)
            return
        starts.failed += 1
        if self.none_left:
            self.should_exit.set()
            return
        longest_s = LONGEST_PAUSE_S if starts.ready_at is None else SHORT_PAUSE_S
        pause_s = min(longest_s, FIRST_PAUSE_S * 2 ** (starts.failed - 1))
        starts.again_at = time.monotonic() + pause_s
        LOG.warning(
            "worker %d of %d %s, %d in a row: it is started again in %g s, and the others go on",
            at + 1,
            len(self.processes),
            "could not be started" if starts.ready_at is None else "ended",
            starts.failed,
            pause_s,
        )
