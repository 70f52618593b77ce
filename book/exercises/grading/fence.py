"""What a kernel that is graded may not say to the preprocessor: files of the grader's machine, and the names of answers."""

import re

from ..includes import for_kernels

DIGRAPHS = {"%:%:": "##", "%:": "#", "??=": "#", "??/": "\\"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"^\s*#\s*(\w+)(.*)$", re.MULTILINE)
FORBIDDEN = {
    "include_next": "no header of this kind",
    "import": "no header of this kind",
    "embed": "no file of the machine",
    "line": "no other names for lines",
}
# What a folder of the book's exercises calls its answer.
ANSWER = re.compile(r"\b(SOLUTION|__INCLUDE_LEVEL__)\b")


def refused(source: str) -> str | None:
    """Why this source is not compiled by a grader, or None. Spliced lines, digraphs and comments are seen through."""
    text = source
    for written, meant in DIGRAPHS.items():
        text = text.replace(written, meant)
    text = re.sub(r"\\[ \t]*\n", "", text)
    text = COMMENT.sub(" ", text)
    for name, rest in DIRECTIVE.findall(text):
        if name in FORBIDDEN:
            return f"#{name}: a kernel needs {FORBIDDEN[name]}"
        if name == "include":
            header = re.fullmatch(r'\s*(?:"([^"]+)"|<([^>]+)>)\s*', rest)
            if header is None:
                return f"#include{rest}: a header is named in quotes or angle brackets"
            path = header[1] or header[2]
            if ".." in path or path.startswith(("/", "\\")) or ":" in path or not for_kernels(path):
                return f"#include {path}: a graded kernel includes CUDA's headers and those of kernels/ only"
    if re.search(r"__has_(include|embed)", text):
        return "__has_include: a graded kernel does not ask which files there are"
    if found := ANSWER.search(text):
        return f"{found[1]}: a name of the exercises' own files"
    return None
