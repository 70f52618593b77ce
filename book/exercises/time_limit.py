"""Stops a launch that does not end. A loop that never leaves runs on happily, and no barrier would notice.

What is limited is the processor's time, not the clock's: a busy machine makes nobody's kernel endless.
"""

import contextlib
import ctypes
import sys
import threading
import time

AGAIN = 0.5  # seconds until a body that has caught the first exception gets another
LOOK = 0.1  # seconds between two looks of a thread, which every system has, as not all have timers


class DoesNotEnd(Exception):
    """The kernel was still running when its time was over. `ptx_line` is where it was then, or None."""

    def __init__(self, seconds: float = 0, ptx_line: int | None = None):
        super().__init__(f"still running after {seconds:g} s")
        self.seconds, self.ptx_line = seconds, ptx_line


@contextlib.contextmanager
def time_limit(seconds: float):
    """Raise DoesNotEnd in the body when it takes longer than this, in seconds of the processor. Not in a browser, whose Python
    has neither timers nor threads: there the reader stops it.
    """
    if sys.platform == "emscripten":
        yield
        return
    runner, done, found = threading.get_ident(), threading.Event(), []
    began = time.process_time()

    def watch():
        wait = LOOK
        while not done.wait(wait):
            if time.process_time() - began > seconds:
                found.append(_ptx_line(sys._current_frames().get(runner)))
                raised = ctypes.py_object(DoesNotEnd)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(runner), raised)
                wait = AGAIN

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except DoesNotEnd as error:
        error.__init__(seconds, found[0] if found else None)
        raise
    finally:
        done.set()
        watcher.join()
        # What was asked for as the body ended is not to reach the caller.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(runner), None)


def _ptx_line(frame) -> int | None:
    """The PTX line of the block of code that the emulator is running in this stack."""
    while frame is not None:
        block = frame.f_locals.get("block")
        code = getattr(block, "code", None)
        if code is not None:
            last = code[-1] if code else getattr(block, "last", None)
            if last is not None:
                return last.line
        frame = frame.f_back
    return None
