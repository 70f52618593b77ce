"""A notebook's cell may take so many seconds of its kernel's processor time, however busy the machine is.

    pytest book --nbval -p tests.processor_limit

nbval's own limit is of a clock, and fails a right cell beside other work. Here the cell is interrupted when the kernel
and the programs that it started have computed for `CELL_SECONDS`, or when `CLOCK_SECONDS` have passed: a cell that waits
for nothing computes nothing.

What the book ships of a page's kernels is not compiled once more (`kernels.shipped`): `tests/book/test_builds.py` asks whether
it is what this compiler makes of them.
"""

from __future__ import annotations

import os
import time
from queue import Empty

import pytest
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell

from book.chapters import computed

CELL_SECONDS = 120  # of processor
CLOCK_SECONDS = 600  # with the start, below the limit of pyproject.toml
START_SECONDS = 240  # of a clock: a kernel that starts among others
OUTPUT_SECONDS = 120  # of a clock, from the end of a cell to its last output
POLL_SECONDS = 1.0


def await_reply(kernel: RunningKernel, msg_id: str, timeout: float | None = None) -> None:
    """Waits for the kernel's answer. `queue.Empty` when the cell has computed for `timeout` seconds."""
    limit = CELL_SECONDS if timeout is None else timeout
    pid = kernel.km.provisioner.pid
    before, began = computed(pid), time.monotonic()
    while computed(pid) - before < limit and time.monotonic() - began < CLOCK_SECONDS:
        try:
            message = kernel.get_message(stream="shell", timeout=POLL_SECONDS)
        except Empty:
            if not kernel.is_alive():
                raise RuntimeError("the kernel died") from None
            continue
        if message["parent_header"].get("msg_id") == msg_id:
            return
    raise Empty


def start(kernel: RunningKernel, *arguments, **more) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GEMM_COMPILER", os.environ.get("GEMM_COMPILER", "last"))
        _start(kernel, *arguments, **more)


_start = RunningKernel.__init__


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config) -> None:
    RunningKernel.__init__ = start
    config.option.nbval_cell_timeout = CELL_SECONDS
    config.option.nbval_kernel_startup_timeout = START_SECONDS
    RunningKernel.await_reply = await_reply


@pytest.hookimpl
def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = OUTPUT_SECONDS
