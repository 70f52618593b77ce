"""NVRTC, NVIDIA's run-time compiler: CUDA C++ text in, PTX and cubin out; no GPU, driver or nvcc
needed.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Compiled:
    """What a compile gave, with messages in `log`. `ptx` and `cubin` are empty when it failed."""

    ok: bool
    log: str
    ptx: str = ""
    cubin: bytes = b""


class CudaBindings:
    """NVRTC through the package cuda-bindings, 12.x or 13.x"""

    def __init__(self):
        from cuda.bindings import nvrtc

        self.nvrtc = nvrtc
        status, self.major, self.minor = nvrtc.nvrtcVersion()
        self._expect(status)

    def architectures(self) -> list[int]:
        status, archs = self.nvrtc.nvrtcGetSupportedArchs()
        self._expect(status)
        return list(archs)

    def compile(
        self, source: str, name: str, headers: Mapping[str, str], options: Sequence[str]
    ) -> Compiled:
        n = self.nvrtc
        texts = [text.encode() for text in headers.values()]
        names = [header.encode() for header in headers]
        status, program = n.nvrtcCreateProgram(
            source.encode(), name.encode(), len(names), texts, names
        )
        self._expect(status)
        try:
            encoded = [option.encode() for option in options]
            (status,) = n.nvrtcCompileProgram(program, len(encoded), encoded)
            log = self._read(n.nvrtcGetProgramLogSize, n.nvrtcGetProgramLog, program)
            # NVRTC ends each compiler stage's part with a NUL.
            log = log.decode(errors="replace").replace("\0", "").rstrip()
            outcome = n.nvrtcResult
            if status in (outcome.NVRTC_ERROR_COMPILATION, outcome.NVRTC_ERROR_INVALID_OPTION):
                return Compiled(False, log)
            self._expect(status)
            ptx = self._read(n.nvrtcGetPTXSize, n.nvrtcGetPTX, program).rstrip(b"\0").decode()
            cubin = self._read(n.nvrtcGetCUBINSize, n.nvrtcGetCUBIN, program)
            return Compiled(True, log, ptx, cubin)
        finally:
            n.nvrtcDestroyProgram(program)

    def _read(self, size_of, read, program) -> bytes:
        status, size = size_of(program)
        self._expect(status)
        buffer = bytearray(size)
        (status,) = read(program, buffer)
        self._expect(status)
        return bytes(buffer)

    def _expect(self, status) -> None:
        if status != self.nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(f"NVRTC: {status.name}")


@lru_cache
def compiler() -> CudaBindings:
    """The NVRTC of this machine. ImportError says what to install when there is none."""
    if os.environ.get("GEMM_COMPILER") == "none":  # as on macOS, for those who test that
        raise ImportError("no NVRTC: GEMM_COMPILER is none")
    try:
        return CudaBindings()
    except Exception as error:  # a missing package, or a package that does not find libnvrtc
        raise ImportError(
            f"no NVRTC: pip install cuda-bindings nvidia-cuda-nvrtc\n{CudaBindings.__doc__}: {error}"
        ) from None
