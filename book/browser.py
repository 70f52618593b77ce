"""A real browser: the machine's own Chromium or Chrome, driven by Playwright."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


class NoBrowser(RuntimeError):
    """There is no browser here, or nothing that drives one; says what to install."""


def executable() -> str:
    """The browser's path: GEMM_CHROMIUM, or the first of `NAMES` on the PATH. NoBrowser where there is none."""
    named = os.environ.get("GEMM_CHROMIUM")
    for candidate in [named] if named else [*NAMES, str(MAC)]:
        if found := shutil.which(candidate):
            return found
    raise NoBrowser(
        "no Chromium or Chrome here: install one (Debian: apt-get install chromium), or name it in GEMM_CHROMIUM"
    )


@contextlib.contextmanager
def launched() -> Iterator:
    """A Playwright browser, without a window."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowser("Playwright is missing: pip install -r requirements-browser.txt") from None
    path = executable()
    # Chromium's sandbox does not start for root, which is who one is in most containers.
    flags = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            browser.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder: Path, path: str = "/") -> Iterator[str]:
    """Serves a folder on this machine, below `path`, as GitHub Pages serves a repository below `/name/`; gives the address."""

    class Handler(_Quiet):
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
