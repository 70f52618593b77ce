"""Stops a launch that does not end. A loop that never leaves runs on happily, and no barrier would notice."""

from __future__ import annotations

import contextlib
import signal
import threading


class DoesNotEnd(Exception):
    """The kernel was still running when its time was over. `ptx_line` is where it was then, or None."""

    def __init__(self, seconds: float, ptx_line: int | None = None):
        super().__init__(f"still running after {seconds:g} s")
        self.seconds, self.ptx_line = seconds, ptx_line


@contextlib.contextmanager
def time_limit(seconds: float):
    """Raise DoesNotEnd in the body when it takes longer than this. Elsewhere than in the main thread, no limit."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return

    def stop(signum, frame):
        raise DoesNotEnd(seconds, _ptx_line(frame))

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ptx_line(frame) -> int | None:
    """The PTX line of the block of code that the emulator is running in this stack."""
    while frame is not None:
        code = getattr(frame.f_locals.get("block"), "code", None)
        if code:
            return code[-1].line
        frame = frame.f_back
    return None
