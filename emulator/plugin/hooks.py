"""What pytest calls: the option, the verdict of each test, and the report at the end."""

import os
import sys

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("emulated GPU")
    group.addoption(
        "--emulate-gpu", action="store_true", help="run CUDA kernels on an emulated GPU"
    )
    group.addoption(
        "--emulate-gpu-seconds", type=float, default=60.0, metavar="S",
        help="skip a test when one launch takes longer (default: 60)",
    )  # fmt: skip


def pytest_configure(config):
    if config.getoption("emulate_gpu"):
        config.pluginmanager.register(EmulatedGpu(config), "emulated-gpu")


class EmulatedGpu:
    """There while `--emulate-gpu` is given."""

    def __init__(self, config):
        from . import imports
        from .device import Device
        from .nvrtc import opened
        from .report import Report

        self.device, self.report, self.opened = Device, Report(), opened
        Device.seconds = config.getoption("emulate_gpu_seconds")
        config.addinivalue_line("markers", "slow: as cupy.testing marks it")
        sys.addaudithook(self._starts)
        finder = imports.install()
        config.add_cleanup(lambda: imports.remove(finder))

    def _starts(self, event, args):
        """Another Python has no emulated GPU: what a test makes of it says nothing. Of files read, a kernel may be one."""
        if event == "open":
            self.opened(args[0])
        if event == "subprocess.Popen" and "python" in os.path.basename(str(args[0])):
            refused = "another Python process, which this plug-in is not in"
            self.device.record.refused.append(refused)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        self.device.begin()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """A hazard or a refusal that the test itself did not let through decides all the same, but for tests that are
        marked to fail.
        """
        report = yield
        record = self.device.record
        if report.when == "call" and not hasattr(report, "wasxfail"):
            if record.wrong and report.outcome != "failed":
                report.outcome = "failed"
                report.longrepr = "\n".join(["The test went on after:", *record.wrong])
            elif record.refused and not record.wrong and report.outcome != "skipped":
                path, line, _ = item.location
                reason = f"Skipped: not emulated: {record.refused[0]}"
                report.outcome, report.longrepr = "skipped", (path, (line or 0) + 1, reason)
        if report.when == "teardown":
            report.emulated = record.plain()
        return report

    def pytest_collectreport(self, report):
        if report.skipped and "not emulated" in str(report.longrepr):
            self.report.files.append(str(report.longrepr[-1]))

    def pytest_runtest_logreport(self, report):
        self.report.add(report)

    def pytest_terminal_summary(self, terminalreporter):
        self.report.show(terminalreporter)
