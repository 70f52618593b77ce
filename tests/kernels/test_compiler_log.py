"""What is made of the compiler's words."""

from pathlib import PureWindowsPath

from kernels.compiler_log import relative_files


def test_line_information_of_windows_names_files_without_their_place_too():
    folder = PureWindowsPath("C:\\cuda\\include")
    ptx = '.file 1 "C:\\\\cuda\\\\include\\\\crt\\\\mma.hpp"\n.file 2 "C:\\cuda\\include/cuda_fp16.hpp"\n.file 3 "D:\\x\\a.cu"\n'
    found = relative_files(ptx, {}, (folder,))
    assert found == '.file 1 "crt/mma.hpp"\n.file 2 "cuda_fp16.hpp"\n.file 3 "a.cu"\n'
