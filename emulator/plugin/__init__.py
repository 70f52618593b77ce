"""`pytest --emulate-gpu`: tests of CUDA kernels, run as they are on a machine without a GPU.

`hooks` is what pytest loads, `imports` puts a stand-in or a changed driver where a test imports CuPy, Numba, Triton or cuda.core,
`device` has the memory and the launches that they share, `nvrtc` the compiler, `report` the lines at the end.
A test is the only one that imports these packages: none of them is needed for the others.
"""
