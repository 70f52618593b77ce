"""Tensor maps for a GPU: `emulator.TensorMap`, the one description for both machines, as the driver
encodes it.

`encode` needs of a map its fields alone, so that this file also works where no copy of this repository is.
"""

import ctypes

import numpy as np

# Format -> the driver's name for it. An 8-bit float is copied as a byte.
DRIVER_NAMES = {
    "uint8": "UINT8",
    "int8": "UINT8",
    "float8_e4m3fn": "UINT8",
    "float8_e5m2": "UINT8",
    "uint16": "UINT16",
    "int32": "INT32",
    "uint32": "UINT32",
    "int64": "INT64",
    "uint64": "UINT64",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "tf32": "TFLOAT32",
    "float64": "FLOAT64",
}


def encode(one) -> np.ndarray:
    """The 128 bytes of a CUtensorMap from an `emulator.TensorMap`, a kernel argument by value.

    RuntimeError with the driver's word where it refuses.
    """
    from cuda.bindings import driver

    def named(enum: str, name: str):
        return getattr(getattr(driver, f"CUtensorMap{enum}"), name)

    swizzle = f"{one.swizzle}B" if one.swizzle else "NONE"
    interleave = f"{one.interleave}B" if one.interleave else "NONE"
    promotion = f"L2_{one.promotion}B" if one.promotion else "NONE"
    fill = "NAN_REQUEST_ZERO_FMA" if one.fill == "nan" else "NONE"
    # The driver has the fastest dimension first, and no pitch for it.
    status, encoded = driver.cuTensorMapEncodeTiled(
        named("DataType", f"CU_TENSOR_MAP_DATA_TYPE_{DRIVER_NAMES[one.format]}"),
        len(one.shape),
        one.address,
        [driver.cuuint64_t(n) for n in reversed(one.shape)],
        [driver.cuuint64_t(n) for n in reversed(one.strides[:-1])],
        [driver.cuuint32_t(n) for n in reversed(one.box)],
        [driver.cuuint32_t(n) for n in reversed(one.element_strides)],
        named("Interleave", f"CU_TENSOR_MAP_INTERLEAVE_{interleave}"),
        named("Swizzle", f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        named("L2promotion", f"CU_TENSOR_MAP_L2_PROMOTION_{promotion}"),
        named("FloatOOBfill", f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the driver refuses this tensor map ({status.name}): {one}")
    return np.frombuffer(ctypes.string_at(int(encoded.getPtr()), 128), np.dtype("V128"))[0]
