"""Prints the model: every recorded row in a line, one rung in detail, or the verdicts of `check`."""

from __future__ import annotations

from kernels.rungs import find
from kernels.table import table

from .bound import UNITS, bound
from .check import HIGHEST, check, timed
from .held import clock, compare
from .prediction import predict
from .recorded import ladder, variants
from .store import complete, counted


def run(options) -> int:
    if options.count:
        wanted = [(row.rung, row.macros) for row in (*ladder(), *variants())]
        print(complete(wanted))
    elif options.predict:
        compare()
    elif options.check:
        return verdicts()
    elif options.rungs:
        for name in options.rungs:
            detail(find(name).name)
    else:
        overview()
    return 0


def overview() -> None:
    """A line per recorded row: least times, what binds, bound, measured, predicted."""
    names = list(UNITS)
    rows = []
    for row, counts in timed():
        limit = bound(counts, row.size, row.gpu, row.ghz or HIGHEST)
        needs = {need.resource: f"{need.ms:.4f}" for need in limit.needs}
        told = predict(counts, row.size, row.gpu, clock(row)).ms if clock(row) else None
        rows.append([
            row.gpu.split("-")[1], row.rung, "x".join(map(str, row.size)), row.output,
            *(needs.get(name, "not measured" if name != "tensor cores" else "") for name in names),
            limit.binding, f"{limit.ms:.4f}", f"{row.ms:.4f}", f"{told:.4f}" if told else "no clock",
        ])  # fmt: skip
    heads = ["GPU", "rung", "size", "output", *names, "binds", "bound", "measured", "predicted"]
    print("milliseconds; a bound without a clock that was read is at 1.98 GHz\n" + table(heads, rows, left=4))  # fmt: skip
    print("conversions: not measured, in no bound: no loop was recorded")


def detail(rung: str) -> None:
    """Every need of every recorded row of a rung, with rates and their sources."""
    for row in ladder():
        if row.rung != rung:
            continue
        counts = counted(row.rung, row.macros)
        limit = bound(counts, row.size, row.gpu, row.ghz or HIGHEST)
        said = f"{row.ghz:.3f} GHz read" if row.ghz else f"no clock read, bound at {HIGHEST} GHz"
        print(
            f"\n{row.gpu}, {rung} {row.size}, {counts.inputs}->{row.output}: "
            f"{row.ms:.4f} ms ({row.least:.4f} to {row.most:.4f}), {said}"
        )
        cells = [
            [n.resource, f"{n.per_product:.3f} {UNITS[n.resource]}", f"{n.rate.value:.4g} per {n.rate.each}",
             f"{n.ms:.4f}", f"{n.ms / row.ms:.1%}", n.rate.source]
            for n in limit.needs
        ]  # fmt: skip
        print(table(["resource", "work per product", "rate", "least ms", "of the time", "source"], cells, left=2))  # fmt: skip
        if clock(row):
            told = predict(counts, row.size, row.gpu, clock(row))
            print(
                f"predicted {told.ms:.4f} ms: clocks until the first products {told.first:,.0f}, "
                f"of loops {told.loop:,.0f}, of stores {told.store:,.0f}"
            )


def verdicts() -> int:
    """Prints what `check` found; 1 where something of today's model does not hold."""
    found = check()
    for one in found:
        said = "holds" if one.holds else "FAILS" if one.of_today else "failed"
        print(f"{said}: {one.claim}: {one.found}")
        for miss in one.misses[: 8 if one.holds else 40]:
            print(f"    {miss}")
    return int(not all(one.holds for one in found if one.of_today))
