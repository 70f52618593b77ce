"""Where the book is published: the address of its repository, and of its pages.

No file names them. They come from the environment of the build, so that a push to any account gives working links, and a
build that knows no address shows none:

    GEMM_REPOSITORY     https://github.com/owner/name, or owner/name of github.com
    GITHUB_REPOSITORY   owner/name; GitHub sets it in its workflows (with GITHUB_SERVER_URL)
    GEMM_SITE           https://owner.github.io/name/; default: where GitHub Pages shows that repository
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlparse

GITHUB = "https://github.com"
EDITOR = "https://github.dev"  # the same addresses, in an editor that knows notebooks
COLAB = "https://colab.research.google.com/github"
BINDER = "https://mybinder.org/v2/gh"
BRANCH = "main"  # what readers edit, and what is published
COLAB_BRANCH = "colab"  # the same files, whose set-up cells know the address: book/publish.py
# An address is put into a string of Python and into a shell's command.
PLAIN = re.compile(r"(?:https?|file|ssh)://[\w.@:/~+-]+")


@dataclass(frozen=True)
class Address:
    """A repository's address without `/` or `.git` at its end, and the pages' address, with `/` at its end, or "" """

    repository: str
    site: str = ""

    @property
    def on_github(self) -> bool:
        return self.repository.startswith(f"{GITHUB}/")

    @property
    def name(self) -> str:
        """`owner/name` of a repository on github.com."""
        return self.repository.removeprefix(f"{GITHUB}/")

    def colab(self, path: str) -> str:
        """The link that opens a notebook in Colab. `path`: from the repository's root, `book/x.ipynb`."""
        return f"{COLAB}/{self.name}/blob/{COLAB_BRANCH}/{path}"

    def binder(self, path: str) -> str:
        """The link that opens a notebook in JupyterLab on Binder."""
        return f"{BINDER}/{self.name}/{BRANCH}?urlpath=lab/tree/{path}"


def _repository(environment: Mapping[str, str]) -> str:
    """The repository's address in words of the environment; "" when nothing names one."""
    if named := environment.get("GEMM_REPOSITORY", "").strip():
        return f"{GITHUB}/{named}" if re.fullmatch(r"[\w.-]+/[\w.-]+", named) else named
    if name := environment.get("GITHUB_REPOSITORY", "").strip():
        return f"{environment.get('GITHUB_SERVER_URL') or GITHUB}/{name}"
    return ""


def _pages(repository: str) -> str:
    """Where GitHub Pages shows a repository of github.com, if nothing else was said."""
    where = urlparse(repository)
    parts = where.path.strip("/").split("/")
    if where.netloc != "github.com" or len(parts) != 2:
        return ""
    owner, name = parts[0].lower(), parts[1]
    if name.lower() == f"{owner}.github.io":
        return f"https://{owner}.github.io/"
    return f"https://{owner}.github.io/{name}/"


def known(environment: Mapping[str, str] = os.environ) -> Address | None:
    """The address that this build was given, or None.

    ValueError names the variable that is no address.
    """
    repository = _repository(environment).rstrip("/").removesuffix(".git")
    site = environment.get("GEMM_SITE", "").strip()
    if not repository:
        return None
    if not PLAIN.fullmatch(repository):
        raise ValueError(
            f"GEMM_REPOSITORY is {repository!r}: expected https://host/owner/name or owner/name"
        )
    if site and not re.match(r"https?://\w", site):
        raise ValueError(f"GEMM_SITE is {site!r}: expected https://host/path/")
    site = site or _pages(repository)
    return Address(repository, f"{site.rstrip('/')}/" if site else "")
