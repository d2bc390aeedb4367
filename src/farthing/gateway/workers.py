"""The processes of a gateway that has several: one that fails is started again, others go on."""

import logging
import time
from collections import defaultdict
from dataclasses import dataclass

from uvicorn.supervisors.multiprocess import Multiprocess, Process

LOG = logging.getLogger("farthing.gateway")
MOST_STARTS = 4
"""How often in a row a worker may fail to start; then it is left out."""
FIRST_PAUSE_S = 1.0
"""Seconds before the second start; twice as many before each further one."""
ANSWER_S = 0.5
"""Seconds that a worker is given to say whether it is ready; then it is asked again."""


@dataclass
class _Starts:
    """How the starts of one of the workers went, since it was last ready."""

    ready: bool = False
    failed: int = 0
    again_at: float | None = None
    """When it is started again, in `time.monotonic`; None: no start is waited for."""

    @property
    def left_out(self) -> bool:
        return self.failed == MOST_STARTS


class Workers(Multiprocess):
    """uvicorn's supervisor, which by itself ends all workers where one cannot be started."""

    @property
    def none_left(self) -> bool:
        """Whether no worker could be started."""
        return all(self._starts[at].left_out for at in range(len(self.processes)))

    def init_processes(self) -> None:
        """Start all workers."""
        self._starts: defaultdict[int, _Starts] = defaultdict(_Starts)
        super().init_processes()

    def keep_subprocess_alive(self) -> None:
        """Start workers again that have ended; end once there is none left to start."""
        for at, process in enumerate(self.processes):
            starts = self._starts[at]
            if self.should_exit.is_set() or starts.left_out:
                continue
            if starts.again_at is not None:
                if time.monotonic() >= starts.again_at:
                    self._start(at)
            elif not self._goes_on(process, starts):
                process.kill()  # where it is there and says nothing
                process.join()
                if starts.ready:
                    self._start(at)
                else:
                    self._failed(at)

    def _goes_on(self, process: Process, starts: _Starts) -> bool:
        """Return whether a worker serves, or still starts; note when it is ready."""
        if starts.ready:
            return process.is_alive(self.config.timeout_worker_healthcheck)
        # Asked for a moment only: one that ends meanwhile would be waited for in vain.
        if process.exitcode is None and process.is_ready(ANSWER_S):
            starts.ready, starts.failed = True, 0
        return process.exitcode is None

    def _start(self, at: int) -> None:
        self._starts[at] = _Starts(failed=self._starts[at].failed)
        self.processes[at] = Process(self.config, self.sockets)
        self.processes[at].start()

    def _failed(self, at: int) -> None:
        """Wait before the next start of a worker, or leave it out."""
        starts = self._starts[at]
        starts.failed += 1
        which = f"worker {at + 1} of {len(self.processes)} could not be started"
        if not starts.left_out:
            pause_s = FIRST_PAUSE_S * 2 ** (starts.failed - 1)
            starts.again_at = time.monotonic() + pause_s
            LOG.warning("%s; it is started again in %g s", which, pause_s)
        elif self.none_left:
            self.should_exit.set()
        else:
            LOG.error(
                "%s, %d times in a row: it is left out, and the others go on; see to what it said "
                "above and restart the gateway",
                which,
                starts.failed,
            )
