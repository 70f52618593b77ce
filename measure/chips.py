"""What GPUs are made of: multiprocessors, arithmetic units and clocks, from the sheets that `machine.PEAKS` names."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.machine import PEAKS, Peak


@dataclass(frozen=True)
class Chip:
    """One GPU. `peak` is its row's name in `machine.PEAKS`; `lanes` are FP32 multiply-add units of one
    multiprocessor; `boost_mhz` is the clock that its FP32 peak is stated for.
    """

    peak: str
    arch: int
    sms: int
    lanes: int
    boost_mhz: int

    @property
    def limits(self) -> Peak:
        """Its data-sheet rates."""
        return next(row for row in PEAKS if row.name == self.peak)

    @property
    def fp32(self) -> float:
        """TFLOP/s of its units: one multiply-add each, every clock."""
        return 2e-6 * self.sms * self.lanes * self.boost_mhz


CHIPS = (
    Chip("V100", 70, 80, 64, 1530),
    Chip("T4", 75, 40, 64, 1590),
    Chip("A100 80GB", 80, 108, 64, 1410),
    Chip("A10", 86, 72, 128, 1695),
    Chip("RTX 3090", 86, 82, 128, 1695),
    Chip("L4", 89, 58, 128, 2040),
    Chip("L40S", 89, 142, 128, 2520),
    Chip("RTX 4090", 89, 128, 128, 2520),
    Chip("H100 PCIe", 90, 114, 128, 1755),
    Chip("H100 SXM", 90, 132, 128, 1980),
    Chip("H200", 90, 132, 128, 1980),
    Chip("RTX PRO 6000 Blackwell", 120, 188, 128, 2617),
)
