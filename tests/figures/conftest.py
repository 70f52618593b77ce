"""The explorers' scripts run in Node.js: where there is none, their tests are skipped, and pytest says so in one line."""

import shutil

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "node: runs an explorer's script in Node.js")


@pytest.fixture(autouse=True)
def node_where_it_is_needed(request):
    if request.node.get_closest_marker("node") and shutil.which("node") is None:
        pytest.skip("comparing the explorers' scripts with Python needs Node.js")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Skips for want of Node.js share one place, so that the summary folds them into one line."""
    report = yield
    if report.skipped and item.get_closest_marker("node"):
        report.longrepr = (__file__, 1, report.longrepr[2])
    return report
