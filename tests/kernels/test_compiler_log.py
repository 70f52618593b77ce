"""What is made of the compiler's words."""

from pathlib import PureWindowsPath

import kernels
from kernels.compiler_log import relative_files
from kernels.source import source


def test_line_information_of_windows_names_files_without_their_place_too():
    folder = PureWindowsPath("C:\\cuda\\include")
    ptx = '.file 1 "C:\\\\cuda\\\\include\\\\crt\\\\mma.hpp"\n.file 2 "C:\\cuda\\include/cuda_fp16.hpp"\n.file 3 "D:\\x\\a.cu"\n'
    found = relative_files(ptx, {}, (folder,))
    assert found == '.file 1 "crt/mma.hpp"\n.file 2 "cuda_fp16.hpp"\n.file 3 "a.cu"\n'


def test_what_ptxas_repairs_of_wgmma_is_told():
    waits = source("wgmma").replace("wgmma_wait<0>();", "")
    built = kernels.build(waits, kernels.find("wgmma").resolve(), arch="90a", name="unwaited")
    assert any(said.startswith("(C7517) wgmma.wait_group is injected") for said in built.repairs)
    assert kernels.build("wgmma", arch="90a").repairs == ()
