"""Which pages are visited, on which screens."""

from urllib.parse import urlparse

from book import address, chapters, publish

SITE = chapters.ROOT / "_build" / "html"
# As GitHub Pages shows a repository: not at the root.
BELOW = (urlparse(where.site).path if (where := address.known()) else "") or "/name/"
SCREEN, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def documents() -> list[str]:
    """Every page of the table of contents, and those that the build adds."""
    listed = [name for _, names in publish.contents() for name in names]
    return [f"{name}.html" for name in [*listed, "search", "genindex", "404"]]
