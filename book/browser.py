"""A real browser: the machine's own Chromium or Chrome, or its Firefox, driven by Playwright.

Debian has Chromium's engine without windows apart (`chromium-headless-shell`): the same pages, in less processor time.
"""

import contextlib
import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

CHROME_OF_MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# kind: (what names it, where it is looked for, what to install)
KINDS = {
    "chromium": (
        "GEMM_CHROMIUM",
        (
            "chromium-headless-shell",
            "chromium",
            "chromium-browser",
            "google-chrome",
            "chrome",
            CHROME_OF_MAC,
        ),
        "Chromium or Chrome here: install one (Debian: apt-get install chromium)",
    ),
    "firefox": (
        "GEMM_FIREFOX",
        ("firefox", "firefox-esr", "/Applications/Firefox.app/Contents/MacOS/firefox"),
        "Firefox here: install it (Debian: apt-get install firefox-esr)",
    ),
}


class NoBrowser(RuntimeError):
    """There is no browser here, or nothing that drives one; says what to install."""


def executable(kind: str = "chromium") -> str:
    """The browser's path: GEMM_CHROMIUM or GEMM_FIREFOX, else the first that is there. NoBrowser where there is none."""
    variable, places, wanted = KINDS[kind]
    named = os.environ.get(variable)
    for candidate in [named] if named else places:
        if found := shutil.which(candidate):
            return found
    raise NoBrowser(f"no {wanted}, or name it in {variable}")


@contextlib.contextmanager
def launched(kind: str = "chromium") -> Iterator:
    """A Playwright browser, without a window."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise NoBrowser("Playwright is missing: pip install -r requirements-browser.txt") from None
    how = {"executable_path": executable(kind)}
    if kind == "firefox":
        how["channel"] = "moz-firefox"  # Mozilla's own, through WebDriver BiDi; else a patched one
    elif getattr(os, "geteuid", lambda: 1)() == 0:
        # Chromium's sandbox does not start for root, which is who one is in most containers.
        how["args"] = ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = getattr(playwright, kind).launch(**how)
        try:
            try:
                browser.new_context().close()
            except Error as problem:
                raise NoBrowser(
                    f"Playwright does not drive {kind} {browser.version}: pip install -r requirements-browser.txt"
                    f" ({problem.message.splitlines()[0]})"
                ) from None
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def served(folder: Path, path: str = "/") -> Iterator[str]:
    """Serves a folder on this machine, below `path`, as GitHub Pages serves a repository below `/name/`; gives the address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def translate_path(self, asked):
            inside = asked.removeprefix(path.rstrip("/"))
            return super().translate_path(inside if asked.startswith(path) else "/no/such/place")

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{path}"
    finally:
        server.shutdown()
        server.server_close()
