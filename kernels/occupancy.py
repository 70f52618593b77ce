"""How many blocks of a kernel one multiprocessor holds, by architecture.

CUDA C++ Programming Guide, tables "Technical Specifications per Compute Capability" (limits) and
the CUDA Occupancy Calculator (allocation: registers in units of 256 a warp, warps in fours, 1024
bytes of shared memory kept by the system per block from compute capability 8.0 on).
"""

from dataclasses import dataclass

REGISTERS = 65536
REGISTER_UNIT = 256
WARP_UNIT = 4
MAX_REGISTERS_PER_THREAD = 255


@dataclass(frozen=True)
class Limits:
    """What a multiprocessor has. Bytes are of shared memory; each block takes `system` of them."""

    warps: int
    blocks: int
    shared: int
    shared_per_block: int
    system: int
    shared_unit: int


KIB = 1024
LIMITS = {
    75: Limits(32, 16, 64 * KIB, 64 * KIB, 0, 256),
    80: Limits(64, 32, 164 * KIB, 163 * KIB, KIB, 128),
    86: Limits(48, 16, 100 * KIB, 99 * KIB, KIB, 128),
    87: Limits(48, 16, 164 * KIB, 163 * KIB, KIB, 128),
    89: Limits(48, 24, 100 * KIB, 99 * KIB, KIB, 128),
    90: Limits(64, 32, 228 * KIB, 227 * KIB, KIB, 128),
    100: Limits(64, 32, 228 * KIB, 227 * KIB, KIB, 128),
    120: Limits(48, 24, 100 * KIB, 99 * KIB, KIB, 128),
}


@dataclass(frozen=True)
class Occupancy:
    """Resident blocks (0: it cannot run) and warps of a multiprocessor; what stops the next block."""

    blocks: int
    warps: int
    max_warps: int
    limited_by: str

    @property
    def fraction(self) -> float:
        return self.warps / self.max_warps


def occupancy(arch: int | str, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """`registers` are of a thread, `shared_bytes`, static and dynamic, of a block."""
    number = int(str(arch).removeprefix("sm_").rstrip("af"))
    if number not in LIMITS:
        known = ", ".join(map(str, LIMITS))
        raise ValueError(f"no limits known for sm_{number}; known are {known}")
    limits = LIMITS[number]
    warps = -(-threads // 32)
    per_warp = _round_up(max(registers, 1) * 32, REGISTER_UNIT)
    warps_by_registers = REGISTERS // WARP_UNIT // per_warp * WARP_UNIT  # each quarter has its own
    shared = _round_up(shared_bytes + limits.system, limits.shared_unit)
    by = {
        "blocks": limits.blocks,
        "warps": limits.warps // warps,
        # Whether one block fits is asked of warps in fours; how many fit, of warps (NVIDIA's cuda_occupancy.h).
        "registers": warps_by_registers // warps
        if _round_up(warps, WARP_UNIT) <= warps_by_registers
        else 0,
        "shared memory": limits.shared // shared if shared else limits.blocks,
    }
    if shared_bytes > limits.shared_per_block:
        by["shared memory"] = 0
    limited_by = min(by, key=by.get)
    blocks = by[limited_by]
    return Occupancy(blocks, blocks * warps, limits.warps, limited_by)


def _round_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
