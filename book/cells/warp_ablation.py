"""The ablation of `warp_tiled` as tables and a picture: what each idea changes, and what it is worth where it was timed."""

import figures
from book.cells import columns, tuned
from measure import ablation
from measure.provenance import label, load

TILE = {"BM": 128, "BN": 128, "BK": 8}
# Recorded by the tuner at one block tile, each step a little more than the one before.
STEPS = {
    "vectorized, thread tile 8 x 8": ("vectorized", {"TM": 8, "TN": 8}),
    "the ideas of warp_tiled, 8 x 8": ("warp_tiled", {"TM": 8, "TN": 8}),
    "thread tile 16 x 8, warp tile 32 x 128": (
        "warp_tiled",
        {"TM": 16, "TN": 8, "WM": 32, "WN": 128},
    ),
    "warp tile 64 x 64": ("warp_tiled", {"TM": 16, "TN": 8, "WM": 64, "WN": 64}),
}


def show_counts() -> None:
    """Shows what each variant costs, of the emulator and of the machine code."""
    rows = []
    for name, ideas in ablation.variants():
        found = ablation.counts(ideas)
        reads, lead = f"{found.register_reads:.2f}", f"{found.loads_lead:.0f}"
        rows.append(
            [name, f"{found.loads:.3f}", f"{found.barriers:g}", reads, lead, found.registers]
        )
    columns.show(
        {
            "ideas": "which of the five ideas the kernel has",
            "wavefronts": "wavefronts of loads from shared memory per multiply-add, on the emulator",
            "barriers": "barriers per tile, on the emulator",
            "registers read": "registers that a multiply-add reads from the register file, on average; machine code for sm_90",
            "lead": "multiply-adds between a load from shared memory and the first use of its data, the median; machine code",
            "registers": "",
        },
        rows,
        title="Which counts each idea changes",
        caption="Block tile 128 x 128 x 8, thread tile 16 x 8.",
    )


def show_times() -> None:
    """Shows what was timed, or says that nothing was."""
    found = ablation.stored()
    if found is None:
        print("Not recorded yet: python -m measure ablation, on a machine with a GPU.")
        return
    rows = [[row["variant"], f"{row['tflops']:.1f}"] for row in found["rows"]]
    heads = {"ideas": "which of the five ideas the kernel has", "TFLOP/s": ""}
    columns.show(heads, rows, caption=columns.sentence(label(found)))


def steps():
    """A waterfall of recorded settings: ideas together, thread tile, shape of the warp tile."""
    recording = load("tune")
    return figures.waterfall(
        {name: tuned.at(rung, **TILE, **more)["tflops"] for name, (rung, more) in STEPS.items()},
        title="The ideas bring most, a larger thread tile the rest, the square warp tile little",
        caption="4096 x 4096 x 4096, block tile 128 x 128 x 8.",
        machine=recording["machine"],
        recorded=recording["recorded"][:10],
    )
