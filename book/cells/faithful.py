"""How far the emulator can be believed: its counts and findings beside those of NVIDIA's tools, as recorded."""

import textwrap
from collections import Counter

from book.cells import columns
from book.cells.grids import grid
from emulator.numbers import fragments
from kernels.mistakes import seeded
from measure import elsewhere, emulator_speed, mistakes_table
from measure.compare import recorded_comparison
from measure.provenance import label
from measure.results import FOLDER
from measure.sanitize import TOOLS, recorded_findings

README = FOLDER.parent / "emulator" / "README.md"


def executes():
    """The table of instruction families in the emulator's own README, for a page."""
    part = README.read_text(encoding="utf-8").split("## What it executes")[1]
    header, *families = columns.cells_of(part.split("\n## ")[0])
    return grid(header, families)


def shapes():
    """The matrix shapes that the emulator multiplies, by the type of A and B."""
    kinds = {"mma": fragments.SHAPES, "wmma": fragments.WMMA_SHAPES}
    rows = []
    for kind in dict.fromkeys(key[3] for found in kinds.values() for key in found):
        cells = [
            ", ".join(f"`m{m}n{n}k{k}`" for m, n, k, has in found if has == kind)
            for found in kinds.values()
        ]
        sums = dict.fromkeys(
            accumulator
            for found in kinds.values()
            for (*_, has), accumulators in found.items()
            if has == kind
            for accumulator in accumulators
        )
        words = {"s8": "s8, u8", "s4": "s4, u4", "e4m3": "e4m3, e5m2"}.get(kind, kind)
        rows.append([words, ", ".join(sums), cells[0] or "-", cells[1] or "-"])
    return grid(["A and B", "sums", *kinds], rows)


def of_others() -> None:
    """Shows how many kernels of other projects are right here, as they are, and what the sanitizer reports of them."""
    found = elsewhere.stored()
    rows = []
    for project in dict.fromkeys(one["project"] for one in found["kernels"]):
        ran = [one for one in found["kernels"] if one["project"] == project]
        kinds = Counter(kind for one in ran for kind in one["hazards"])
        said = ", ".join(f"`{kind}` ({count})" for kind, count in kinds.items())
        if project != elsewhere.SUMS:
            rows.append(
                [project, len(ran), sum(one["said"] == "right" for one in ran), said or "-"]
            )
    rows.append(["all", *(sum(row[i] for row in rows) for i in (1, 2)), ""])
    made = " and ".join(f"{name} {version}" for name, version in found["compilers"].items())
    columns.show(
        {
            "project": "whose kernels they are",
            "kernels": "how many ran, each with random inputs",
            "right": f"those whose largest error is at most {elsewhere.TOLERANCE:.0%} of the largest element of the right result",
            "reported": "kinds of hazard that the sanitizer reports, and of how many kernels",
        },
        rows,
        caption=f"Compiled for sm_100a (three of Triton's for sm_120a) by {made}; run on {found['recorded'][:10]}.",
    )


def counted() -> None:
    """Shows, for each rung, how many counters of a launch were compared and how many are equal."""
    label, rows = recorded_comparison()
    cells = []
    for rung in dict.fromkeys(row["rung"] for row in rows):
        same = [row["emulator"] == row["gpu"] for row in rows if row["rung"] == rung]
        cells.append([rung, len(same), sum(same)])
    cells.append(["all", sum(c[1] for c in cells), sum(c[2] for c in cells)])
    columns.show(
        {
            "rung": "a kernel of the ladder; one launch of each",
            "counters": "counters of the launch that were compared",
            "equal": "counters that the emulator and Nsight Compute have alike",
        },
        cells,
        caption=columns.sentence(label),
    )


def differences() -> None:
    """Shows every counter for which the emulator and the GPU disagree."""
    _, rows = recorded_comparison()
    cells = [
        [
            row["rung"],
            row["counter"],
            f"{row['emulator']:,}",
            f"{row['gpu']:,}",
            f"{row['emulator'] - row['gpu']:+,}",
        ]
        for row in rows
        if row["emulator"] != row["gpu"]
    ]
    columns.show(
        {
            "rung": "a kernel of the ladder",
            "counter": "what was counted, over a whole launch",
            "emulator": "the emulator's count",
            "GPU": "Nsight Compute's count",
            "more": "how many more the emulator has",
        },
        cells,
    )


def rungs_found_clean() -> None:
    """Shows for each tool how many rungs it watched, and what it and the emulator reported."""
    label, findings = recorded_findings()
    cells = []
    for tool in TOOLS:
        rows = [f for f in findings if f.tool == tool and " " not in f.kernel]
        cells.append(
            [
                tool,
                len(rows),
                sum(f.gpu_errors or 0 for f in rows),
                sum(bool(f.emulator_says) for f in rows),
            ]
        )
    columns.show(
        {
            "tool": "a tool of compute-sanitizer",
            "rungs": "kernels of the ladder that it watched",
            "reports of the tool": "what it complained of",
            "reports of the emulator": "what the emulator complained of, for the same kernels and inputs",
        },
        cells,
        caption=columns.sentence(label),
    )


def seeded_mistakes() -> None:
    """Shows what each judge caught of the seeded mistakes, and what the emulator does not see, with the reason."""
    stored = mistakes_table.recording_of_gpu()
    scores = mistakes_table.scores(stored)
    columns.show(
        {
            "judge": "who judges; at first: by the words that were foreseen as naming a mistake; held-out rows: see below",
            "mistakes": "mistakes that it judged",
            "caught": "of these, it found something wrong",
            "named": "and what it said is about a mistake of that kind",
            "with line": "and it told a line of the kernel",
            "right rows": "right changes that look like mistakes; on the GPU the unchanged rungs, too",
            "false alarms": "of these, it found something wrong",
            "no verdict": "runs of a tool that hung or ended in a fault, and told nothing",
            "s each": "median time of a row: of processor, on the GPU of a process with its start",
        },
        [mistakes_table.cells(score) for score in scores],
        caption=columns.sentence(
            f"{label(stored)}, compute-sanitizer {stored['machine']['compute_sanitizer']}"
        ),
    )
    reasons = {row.key: row.reason for row in seeded()}
    for key in next(score for score in scores if score.name == "emulator").missed:
        print(textwrap.fill(f"not seen by the emulator: {key}. Reason: {reasons[key]}.", 84))


def empty_copies(*rungs: str) -> None:
    """Shows how many `cp.async` of a launch bring data, how many fill zeros, and what each costs.

    A copy of one warp with data brings 16 sectors. The emulator charges all copies of these rungs alike,
    on average; the GPU's total, less that price for the copies with data, is left for the empty ones.
    """
    _, rows = recorded_comparison()
    counts = {(row["rung"], row["counter"]): row for row in rows}
    cells = []
    for rung in rungs:
        copies, sectors, wavefronts = (
            counts[rung, f"{what}, cp.async"]
            for what in ("global requests", "global sectors", "shared wavefronts")
        )
        full = sectors["emulator"] // 16
        empty = copies["emulator"] - full
        price = wavefronts["emulator"] / copies["emulator"]
        left = (wavefronts["gpu"] - full * price) / empty
        cells.append([rung, full, empty, f"{price:g}", f"{left:g}"])
    columns.show(
        {
            "rung": "a kernel of the ladder",
            "with data": "`cp.async` of a launch that bring data",
            "without": "`cp.async` of a launch that only fill with zeros",
            "a copy costs": "wavefronts per `cp.async` with data, as the emulator counts them",
            "an empty one": "wavefronts per `cp.async` without data: what the GPU's count leaves for them",
        },
        cells,
    )


def speed() -> None:
    """Shows what `python -m emulator bench` measured on one core, beside Numba's CUDA simulator there."""
    stored = emulator_speed.stored()
    size, numba = stored["size"], stored["numba"]
    slow = numba["multiply_adds_per_second"]
    cells = [
        [
            found["name"],
            f"{size}^3",
            f"{found['seconds']:.2f}",
            f"{found['multiply_adds_per_second'] / 1e6:.1f}",
            f"{found['multiply_adds_per_second'] / slow:.0f}x",
        ]
        for found in stored["kernels"]
    ]
    n = numba["size"]
    cells.append(
        [
            "Numba's simulator, naive",
            f"{n}^3",
            f"{n**3 / slow:.2f}",
            f"{slow / 1e6:.2f}",
            "1x",
        ]
    )
    versions = ", ".join(f"{k} {v}" for k, v in stored["versions"].items())
    columns.show(
        {
            "kernel": "what ran, on the emulator unless it says so",
            "size": "M = N = K",
            "seconds": "the best of three launches on one core (of the simulator, of four)",
            "million multiply-adds/s": "multiply-adds of the product, over the time",
            "ratio": "speed over that of Numba's simulator",
        },
        cells,
        caption=f"Recorded on {stored['machine']['cpu']}, {stored['recorded'][:10]}, {versions}.",
    )
