"""Runs a program that may compute for so many seconds, however busy the machine is."""

from __future__ import annotations

import subprocess

CLOCK_SECONDS = 600  # what waits for nothing computes nothing


def run(command: list[str], seconds: int = 60, **how) -> subprocess.CompletedProcess:
    """What `subprocess.run` returns, with its output as text. The system ends the program after `seconds` of processor.

    On Windows, which has no such limit, these are seconds of a clock.
    """
    try:
        import resource
    except ImportError:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, **how)

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    return subprocess.run(
        command, capture_output=True, text=True, timeout=CLOCK_SECONDS, preexec_fn=limit, **how
    )
