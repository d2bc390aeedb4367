"""The processes of a gateway that answer: one that fails is started again, and others go on.

Where the configuration is read again, new ones start with it beside those that serve. Once all new
ones are ready the old ones retire: they finish what they have, and end. Where one does not become
ready, all new ones end, and nothing changed.
"""

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from uvicorn.supervisors.multiprocess import Multiprocess, Process

from farthing.errors import InputError
from farthing_gateway.candidate import Candidate
from farthing_gateway.config import ServeConfig
from farthing_gateway.connections import ConnectionConfig, RetiringServer
from farthing_gateway.log_lines import in_one_line
from farthing_gateway.reloading import Outcomes

LOG = logging.getLogger("farthing_gateway")
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
READY_S = 120.0
"""Seconds in which new workers must be ready to take over."""
LOOK_S = 0.05
"""How often they are asked."""
SLOW_END_S = 60.0
"""Seconds beyond all that requests may take, after which a worker that retires is killed."""
CLOSED_S = 2.0
"""Seconds that are waited for a worker to take no more connections."""
RETIRE = b"retire"
"""What a worker hears whose work others have taken over."""


IGNORED = (signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU)
"""Signals by which uvicorn's supervisor restarts, starts and ends workers of its own kind, and that
would end or stop a worker amid its requests. The first is the supervisor's: it reads its
configuration again."""


def set_signals() -> None:
    """Have signals end this process in order: the server has ended by then, or had not begun."""
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, _ended)
    ignore_signals()


def ignore_signals() -> None:
    """Pass over what would end or stop this process."""
    for one in IGNORED:
        signal.signal(one, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)


def _ended(*_: object) -> None:
    raise SystemExit(0)


class Worker(Process):
    """A process that serves, and ends with the one that started it."""

    config: ConnectionConfig

    def start(self) -> None:
        """Start it; until it passes over them, signals that are not for it wait."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the worker's process."""
        threading.Thread(target=_end_with_parent, daemon=True).start()
        set_signals()
        self._server = self._retiring = RetiringServer(self.config)
        with in_one_line():
            super().target(sockets)

    def is_alive(self, timeout: float = 5) -> bool:
        """Return whether it answers in time; one that ends meanwhile is not waited for."""
        until = time.monotonic() + timeout
        try:
            self.parent_conn.send(b"ping")
            while self.exitcode is None and time.monotonic() < until:
                if self.parent_conn.poll(ANSWER_S):
                    self.parent_conn.recv()
                    return True
        except (OSError, EOFError):  # it ended
            pass
        return False

    def retire(self) -> None:
        """Have it take no new connections, and end once those that it has have ended."""
        if self.exitcode is None:
            self.parent_conn.send(RETIRE)

    def wait_until_closed(self) -> None:
        """Wait, not for long, until one that retires takes no more connections."""
        try:
            while self.exitcode is None and self.parent_conn.poll(CLOSED_S):
                if self.parent_conn.recv() == RETIRE:  # before it there may be an old answer
                    return
        except (OSError, EOFError):  # it ended
            pass

    def pong(self) -> None:
        """Do what the supervisor asks, in the worker's process: say how it is, or retire."""
        if self.child_conn.recv() == RETIRE:
            self._retiring.retire()
            self._retiring.closed.wait(CLOSED_S)
            self.child_conn.send(RETIRE)
        else:
            self.child_conn.send(self._retiring.started)


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


@dataclass
class _Retired:
    """A worker that finishes what it has."""

    process: Process
    until: float
    """When it must have ended, in `time.monotonic`."""


Reread = Callable[[ServeConfig, Callable[[], bool]], Candidate]
"""Reads the configuration again: what is served, and whether the gateway is asked to end."""


class Workers(Multiprocess):
    """uvicorn's supervisor, which by itself ends all workers where one cannot be started."""

    config: ConnectionConfig
    processes: list[Worker]  # type: ignore[assignment] # it makes none of its own

    def __init__(
        self,
        served: ServeConfig,
        settings: Callable[[ServeConfig], ConnectionConfig],
        reread: Reread,
        outcomes: Outcomes,
        sockets: list[socket.socket],
    ) -> None:
        super().__init__(settings(served), sockets)
        self._served = served
        self._settings = settings
        self._reread = reread
        self._outcomes = outcomes
        self._starts: defaultdict[int, _Starts] = defaultdict(_Starts)
        self._has_served = False
        self._retired: list[_Retired] = []

    @property
    def none_left(self) -> bool:
        """Whether no worker could be started."""
        failed = (self._starts[at].failed for at in range(len(self.processes)))
        return not self._has_served and all(times >= MOST_STARTS for times in failed)

    def init_processes(self) -> None:
        """Start all workers."""
        for one in (signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(one, signal.SIG_IGN)
        self.processes = self._new(self.config)
        for process in self.processes:
            process.start()

    def handle_hup(self) -> None:
        """Read the configuration again, and have new workers take over with it."""
        self._outcomes.begin()
        try:
            found = self._reread(self._served, self._is_ending)
            self._replace(self._settings(found.config))
        except Exception as error:  # noqa: BLE001 - whatever it is, what serves goes on
            said = (
                str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            )
            LOG.warning("not taken: %s; what was read before goes on", said)
            self._outcomes.end(said, taken=False)
            return
        self._served = found.config
        said = f"taken: {found.config.file} is served by {len(self.processes)} new worker(s)"
        for line in (said, *found.notes):
            LOG.warning("%s", line)
        self._outcomes.end(said, found.notes, taken=True)

    def keep_subprocess_alive(self) -> None:
        """Start workers again that have ended; end where none was ever ready."""
        self._look_at_retired()
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

    def terminate_all(self) -> None:
        """Ask all to end, also those that retire."""
        for process in (*self.processes, *(one.process for one in self._retired)):
            process.terminate()

    def join_all(self) -> None:
        """Wait until all have ended."""
        for process in (*self.processes, *(one.process for one in self._retired)):
            process.join()

    def _is_ending(self) -> bool:
        asked = {signal.SIGINT, signal.SIGTERM}
        return self.should_exit.is_set() or not asked.isdisjoint(self.signal_queue)

    def _new(self, settings: ConnectionConfig) -> list[Worker]:
        return [Worker(settings, self.sockets) for _ in range(settings.workers)]

    def _replace(self, settings: ConnectionConfig) -> None:
        """Have new workers take over, once all are ready.

        Raises:
            InputError: one does not become ready.
        """
        new, begun = self._new(settings), []
        try:
            for process in new:
                process.start()
                begun.append(process)
            self._wait_for(new)
        except (InputError, OSError):  # the system may refuse another process
            for process in begun:
                process.kill()
                process.join()
            raise
        drain_s = self.config.timeout_graceful_shutdown or 0
        until = time.monotonic() + self.config.retire_s + drain_s + SLOW_END_S
        for process in self.processes:
            process.retire()
            self._retired.append(_Retired(process, until))
        for process in self.processes:  # so that all that is asked from now on hears the new
            process.wait_until_closed()
        self.processes, self.config, self.processes_num = new, settings, len(new)
        now, self._has_served = time.monotonic(), True
        self._starts = defaultdict(_Starts, {at: _Starts(ready_at=now) for at in range(len(new))})

    def _wait_for(self, new: list[Worker]) -> None:
        until = time.monotonic() + READY_S
        waiting = new
        while waiting := [one for one in waiting if not one.is_ready(LOOK_S)]:
            if self._is_ending():
                raise InputError("the gateway ends")
            if any(one.exitcode is not None for one in waiting):
                raise InputError("a new worker could not be started; its log says why")
            if time.monotonic() > until:
                raise InputError(f"new workers were not ready in {READY_S:g} s")
            time.sleep(LOOK_S)

    def _look_at_retired(self) -> None:
        """Forget those that have ended; end those that take too long."""
        for one in list(self._retired):
            if one.process.exitcode is None and time.monotonic() >= one.until:
                LOG.warning("a worker that was to finish its requests did not end, and is killed")
                one.process.kill()
            if one.process.exitcode is not None:
                one.process.join()
                self._retired.remove(one)

    def _goes_on(self, process: Process, starts: _Starts) -> bool:
        if starts.ready_at is not None:
            return process.is_alive(self.config.timeout_worker_healthcheck)
        # Asked for a moment only: one that ends meanwhile would be waited for in vain.
        if process.exitcode is None and process.is_ready(ANSWER_S):
            starts.ready_at, self._has_served = time.monotonic(), True
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
            "worker %d of %d %s, %d in a row: it is started again in %g s%s",
            at + 1,
            len(self.processes),
            "could not be started" if starts.ready_at is None else "ended",
            starts.failed,
            pause_s,
            ", and the others go on" if len(self.processes) > 1 else "",
        )
