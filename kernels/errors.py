"""What can go wrong before a kernel runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    """A message of the compiler. `line` counts from 1, `column` from 0; None where it names none."""

    severity: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        if self.line is None:
            return f"{self.severity}: {self.message}"
        lines = [f"{self.file}:{self.line}: {self.severity}: {self.message}"]
        if self.source is not None:
            lines.append(f"{self.line:5d} | {self.source}")
            if self.column is not None:
                lines.append(f"      | {' ' * self.column}^")
        return "\n".join(lines)


class BuildError(Exception):
    """The source does not compile: `diagnostics` are the messages, `log` the compiler's own words."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = (), log: str = ""):
        super().__init__("\n".join([message, *map(str, diagnostics)]))
        self.diagnostics = diagnostics
        self.log = log


class UnsupportedGPU(RuntimeError):
    """This machine's GPU (or the lack of one) cannot run what was asked for."""


class NoCompiler(ImportError):
    """This machine has no NVRTC, and the builds that the book ships have none of what was asked for."""

    def __init__(self, what: str):
        super().__init__(
            f"{what} is not among the builds that the book ships, and this machine has no CUDA compiler "
            "(NVRTC; NVIDIA has none for macOS): run this cell in Colab, on Linux or on Windows."
        )

    def _render_traceback_(self) -> list[str]:
        """In a notebook: one line, no traceback."""
        return [str(self)]
