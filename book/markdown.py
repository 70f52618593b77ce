"""The Markdown of the notebooks, in two forms.

A notebook holds what JupyterLab, Colab and GitHub show as it is: folds are `<details>`, citations are links. The build makes
directives of it, which Sphinx numbers and collects. `plain` gives the first form, `myst` the second; each is the other's
inverse, and leaves alone what is in its form already. An author may write either: `chapters.write` stores the first.

| in a notebook | for the build |
|---|---|
| `<strong id="ex-a">Exercise.</strong> Task`, up to its hint | `:::{exercise}` with `:label: ex-a` |
| `<details><summary>Hint</summary>` | `:::{admonition} Hint` with `:class: dropdown` |
| `<details id="solution-ex-a"><summary>Solution</summary>` | `:::{solution} ex-a` with `:class: dropdown` |
| a quotation that begins with `> **Takeaways**` | `:::{admonition} Takeaways` with `:class: takeaways` |
| `([NVIDIA, 2025](https://... "ptx-isa"))` | `` {cite:p}`ptx-isa` `` |
"""

import re
from functools import cache
from pathlib import Path

BIBLIOGRAPHY = Path(__file__).with_name("references.bib")

_TASK = re.compile(
    r"(?ms)^<strong id=\"(?P<label>ex-[\w-]+)\">Exercise\.</strong>[ \n](?P<body>.*?)\s*"
    r"(?=^<details|^<strong id=|^#{1,3} |\Z)"
)
_HINT = re.compile(r"(?ms)^<details><summary>Hint</summary>\n\n(?P<body>.*?)\n\n</details>$")
_SOLUTION = re.compile(
    r"(?ms)^<details id=\"solution-(?P<label>[\w-]+)\"><summary>Solution</summary>\n\n(?P<body>.*?)\n\n</details>$"
)
_TAKEAWAYS = re.compile(r"(?m)^> \*\*Takeaways\*\*\n>\n(?P<body>(?:>.*(?:\n|\Z))+)")
_LINK = r"\[[^\]]+\]\(\S+ \"(?P<key>[\w:-]+)\"\)"
_LINKS = _LINK.replace("?P<key>", "?:")
CITATION = re.compile(rf"\((?P<links>{_LINKS}(?:, {_LINKS})*)\)|\{{cite:p\}}`(?P<keys>[^`]+)`")

_DIRECTIVE = re.compile(
    r"(?ms)^(?P<fence>:{3,})\{(?P<name>exercise|solution|admonition)\} ?(?P<argument>[^\n]*)\n"
    r"(?P<options>(?::[\w-]+:[^\n]*\n)*)\s*(?P<body>.*?)\s*^(?P=fence)$"
)


def myst(text: str) -> str:
    """Markdown for the build: its folds and links as directives and roles."""
    text = _TAKEAWAYS.sub(_boxed, text)
    text = _TASK.sub(r":::{exercise}\n:label: \g<label>\n\g<body>\n:::\n\n", text)
    text = _HINT.sub(r":::{admonition} Hint\n:class: dropdown\n\g<body>\n:::", text)
    text = _SOLUTION.sub(r":::{solution} \g<label>\n:class: dropdown\n\g<body>\n:::", text)
    return CITATION.sub(_role, text).rstrip("\n")


def plain(text: str) -> str:
    """Markdown as a notebook holds it. KeyError for a citation that `references.bib` lacks."""
    return CITATION.sub(_linked, _DIRECTIVE.sub(_unboxed, myst(text)))


def _boxed(found: re.Match) -> str:
    body = "\n".join(line.removeprefix(">").removeprefix(" ") for line in found["body"].split("\n"))
    return f":::{{admonition}} Takeaways\n:class: takeaways\n{body.strip()}\n:::\n"


def _unboxed(found: re.Match) -> str:
    options = dict(re.findall(r":([\w-]+):\s*(\S+)", found["options"]))
    body, argument = found["body"], found["argument"].strip()
    if found["name"] == "exercise":
        return f'<strong id="{options["label"]}">Exercise.</strong> {body}'
    if found["name"] == "solution":
        head = f'<details id="solution-{argument}"><summary>Solution</summary>'
    elif options.get("class") == "takeaways":
        lines = ["**Takeaways**", "", *body.split("\n")]
        return "\n".join(f"> {line}".rstrip() for line in lines)
    else:
        head = f"<details><summary>{argument}</summary>"
    return f"{head}\n\n{body}\n\n</details>"


def _role(found: re.Match) -> str:
    if found["keys"]:
        return found.group()
    keys = re.findall(_LINK, found["links"])
    if not set(keys) <= set(references()):
        return found.group()  # a link with a title of its own
    return f"{{cite:p}}`{','.join(keys)}`"


def _linked(found: re.Match) -> str:
    if not found["keys"]:
        return found.group()
    links = []
    for key in (key.strip() for key in found["keys"].split(",")):
        if key not in references():
            raise KeyError(f"{BIBLIOGRAPHY.name} has no entry {key!r}")
        label, address = references()[key]
        links.append(f'[{label}]({address} "{key}")')
    return f"({', '.join(links)})"


@cache
def references() -> dict[str, tuple[str, str]]:
    """{key: ("Higham and Mary, 2019", address)} of every entry of `references.bib`."""
    from pybtex.database import parse_file

    entries = parse_file(str(BIBLIOGRAPHY), bib_format="bibtex").entries
    return {key: (_label(entry), _address(entry)) for key, entry in entries.items()}


def _label(entry) -> str:
    names = [
        " ".join(str(name) for name in (*author.rich_prelast_names, *author.rich_last_names))
        for author in entry.persons["author"]
    ]
    if len(names) > 2:
        names = [f"{names[0]} et al."]
    words = " and ".join(names)
    return f"{words}, {entry.fields['year']}" if "year" in entry.fields else words


def _address(entry) -> str:
    if "url" in entry.fields:
        return entry.fields["url"]
    if "doi" in entry.fields:
        return f"https://doi.org/{entry.fields['doi']}"
    return re.search(r"\\url\{([^}]*)\}", entry.fields["howpublished"])[1]
