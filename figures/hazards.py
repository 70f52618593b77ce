"""A hazard on memory or registers: who touches what, and what is missing in between."""

from __future__ import annotations

from figures import style
from figures.drawing import Canvas, Drawing

__all__ = ["hazard"]

# kind: (what the earlier access does, what the later one does, what is missing between them)
_KINDS = {
    "read-after-write": ("writes", "reads", "no barrier orders the two"),
    "write-after-read": ("reads", "writes", "no barrier orders the two"),
    "write-after-write": ("writes", "writes", "no barrier orders the two"),
    "unfinished-copy": ("starts a copy to", "touches", "the copy has not been waited for"),
    "uninitialised-read": (None, "reads", "nobody has written it yet"),
    "global-race": ("touches", "touches", "nothing orders the two"),
    "uninitialised-register": (None, "uses", "nothing has given it a value"),
    "undefined-shuffle": (
        "receives by a shuffle",
        "uses",
        "the lane that should have sent it took no part",
    ),
    "membermask": (None, "names lanes by", "the mask names lanes that do not come"),
    "unfinished-read": ("starts a read of", "writes", "the read has not been waited for"),
    "missing-proxy-fence": (
        "writes",
        "starts a read by the async proxy of",
        "no fence.proxy.async in between",
    ),
    "wrong-swizzle": (
        "starts a copy to",
        "starts a product that reads",
        "descriptor and tensor map disagree on the swizzle",
    ),
    "missing-init-fence": (
        "writes a fresh mbarrier to",
        "starts a copy that counts at",
        "no fence.mbarrier_init in between",
    ),
    "exit-before-copy": (None, "starts a copy, and ends before it:", "the copy was not waited for"),
    "exited-block": (None, "reaches from another block into", "that block may have ended"),
    "unfinished-wgmma": ("starts a product in", "touches", "no wgmma.wait_group in between"),
    "overwritten-fragment": (
        "starts a product that reads",
        "writes",
        "no wgmma.wait_group in between",
    ),
    "missing-wgmma-fence": ("touches", "starts a product in", "no wgmma.fence in between"),
    "uncommitted-wgmma": (
        None,
        "starts a product, and ends before it:",
        "the product was not waited for",
    ),
    "unfinished-product": ("starts a product in", "touches", "its commit has not been waited for"),
    "unordered-columns": ("touches", "touches", "no barrier orders the two"),
    "uninitialised-column": (None, "reads", "nobody has written them"),
    "missing-tcgen05-fence": ("touches", "touches", "no tcgen05.fence in between"),
    "missing-tcgen05-wait": ("loads or stores", "touches", "no tcgen05.wait in between"),
    "unfinished-tensor-load": ("starts a load to", "uses", "no tcgen05.wait::ld in between"),
    "two-writers": ("starts a product in", "starts another in", "nobody waited for the first"),
    "early-dealloc": ("uses", "deallocates", "no barrier orders the two"),
    "leaked-columns": (None, "allocates, and ends with", "no tcgen05.dealloc before the end"),
    "uncommitted-product": (
        None,
        "starts a product, and ends before it:",
        "the product was not waited for",
    ),
    "unstarted-block": (None, "reaches from another block into", "that block may not have begun"),
    "unmade-barrier": ("initialises an mbarrier at", "uses it at", "nothing orders the two"),
    "remade-barrier": (
        "initialises an mbarrier at",
        "initialises it again at",
        "no mbarrier.inval in between",
    ),
    "overwritten-barrier": ("initialises an mbarrier at", "writes", "no mbarrier.inval in between"),
    "unchecked-wait": (None, "tries to wait at", "nobody looks whether the phase is over"),
    "surplus-arrival": (None, "arrives at", "its phase has all that it counts"),
    "shared-barrier": ("comes to", "comes to", "nothing says who meets whom"),
    "unfinished-store": ("starts a copy to", "touches", "the copy has not been waited for"),
    "foreign-lanes": (None, "names", "they are warp 0's; another warp gets its own"),
    "incoherent-read": ("writes", "reads by ld.global.nc", "which is for what nobody writes"),
    "unreleased-map": ("changes", "copies by the tensor map at", "no release to TMA in between"),
    "unacquired-map": ("changes", "copies by the tensor map at", "its block has not acquired it"),
}
# Where these are found is no byte of memory: (the place in a sentence, in a box).
_NO_MEMORY = {
    "uninitialised-register": ("a variable", "variable"),
    "undefined-shuffle": ("a variable", "variable"),
    "membermask": ("a mask", "mask"),
    "unfinished-wgmma": ("sums in registers", "registers"),
    "overwritten-fragment": ("a fragment of A in registers", "registers"),
    "missing-wgmma-fence": ("registers of a product", "registers"),
    "uncommitted-wgmma": ("sums in registers", "registers"),
    "shared-barrier": ("a named barrier", "barrier"),
    **dict.fromkeys(
        ("unfinished-product", "unordered-columns", "uninitialised-column", "missing-tcgen05-fence",
         "missing-tcgen05-wait", "two-writers", "early-dealloc", "leaked-columns", "uncommitted-product",
         "foreign-lanes"),
        ("columns of tensor memory", "tensor memory"),
    ),
    "unfinished-tensor-load": ("registers of a load", "registers"),
}  # fmt: skip
_FITS = 50  # characters of source that a box holds


def hazard(found, source: str | None = None, title: str | None = None) -> Drawing:
    """One hazard of `trace.hazards`: the two accesses in the order they were seen, and the bytes they meet in.

    found: an `emulator` hazard. source: the kernel's source text, to quote the two lines. `facts` holds {"kind", "lines":
    (earlier, later), "threads", "place"}. ValueError for an unknown kind.
    """
    if not hasattr(found, "kind"):
        raise ValueError(f"one hazard is drawn, as trace.hazards[0], not {found!r:.40}")
    if found.kind not in _KINDS:
        raise ValueError(f"unknown kind of hazard {found.kind!r}; known are {', '.join(_KINDS)}")
    before, after, missing = _KINDS[found.kind]
    if found.kind in _NO_MEMORY:
        place, box = _NO_MEMORY[found.kind]
        byte = ""
    else:
        box = found.symbol or "shared"
        place = (
            f"{found.symbol} + {found.offset} B" if found.symbol else f"shared byte {found.address}"
        )
        byte = f"byte {found.offset if found.symbol else found.address}"
    steps = [(after, found.thread, found.source, found.ptx_line)]
    if before is not None:
        steps.insert(0, (before, found.other_thread, found.other_source, found.other_ptx_line))
    wide, tall, gap, top = 500.0, 66.0, 50.0, 4.0
    canvas = Canvas(
        720, top + len(steps) * tall + (len(steps) - 1) * gap + (gap if before is None else 0) + 6
    )
    cell_x, cell_w = 590.0, 126.0
    middle = canvas.height / 2 if len(steps) == 2 else top + gap + tall / 2
    if before is None:
        canvas.text(wide / 2, top + 20, missing, size=13, bold=True, ha="center", color=style.INK)
    for index, (verb, thread, where, ptx_line) in enumerate(steps):
        y = top + index * (tall + gap) + (gap if before is None else 0)
        color = style.BLUE if index == 0 and before else style.ORANGE
        canvas.rect(1, y, wide, tall, fill=style.SOFT)
        canvas.rect(1, y, 6, tall, fill=color)
        who = f"{_who(thread)} {verb} {place}"
        canvas.text(18, y + 19, who, size=13.5, bold=True)
        canvas.text(18, y + 46, _quote(where, ptx_line, source), size=12.5, mono=True)
        y_mid = y + tall / 2
        writes = verb.startswith(("writes", "starts")) and " read" not in verb
        ends = (
            wide + 6,
            y_mid,
            cell_x - 8,
            middle + (0 if len(steps) == 1 else (index * 2 - 1) * 12),
        )
        if writes:
            canvas.arrow(*ends, color=color, lw=2.2, size=9)
        else:
            canvas.arrow(ends[2], ends[3], ends[0], ends[1], color=color, lw=2.2, size=9)
    if before is not None:
        y = top + tall + gap / 2
        canvas.line((1, y), (wide, y), color=style.VERMILION, lw=2, dash=(5, 4), z=1)
        words = len(missing) * 8.3
        canvas.rect(wide / 2 - words / 2 - 8, y - 11, words + 16, 22, fill=style.CARD, z=2)
        canvas.text(wide / 2, y, missing, size=13, bold=True, ha="center", color=style.INK)
    colors = {"fill": style.tint(style.VERMILION, 0.35), "edge": style.VERMILION}
    canvas.rect(cell_x, middle - 30, cell_w, 60, lw=1.5, **colors)
    x, how = cell_x + cell_w / 2, {"ha": "center", "color": "#111111"}
    canvas.text(x, middle - (9 if byte else 0), box, size=12.5, bold=True, **how)
    canvas.text(x, middle + 11, byte, size=12, **how)
    lines = tuple(where[1] if where else None for _, _, where, _ in steps)
    spoken = ", then ".join(
        f"{_who(thread)} {verb} {place}"
        + (f" at line {where[1]}" if where else f" at PTX line {ptx}" if ptx else "")
        for verb, thread, where, ptx in steps
    )
    return Drawing(
        title=title
        or f"{'An' if found.kind[0] in 'aeiou' else 'A'} {found.kind} hazard: {missing}",
        alt=f"{spoken[0].upper()}{spoken[1:]}: {missing}.",
        caption=(
            f"Found by the emulator {found.count} times in this launch; time runs downwards."
            if found.count > 1
            else ""
        ),
        facts={
            "kind": found.kind,
            "lines": lines,
            "threads": tuple(thread for _, thread, _, _ in steps),
            "place": place,
        },
        figure=canvas,
        min_width=580,
    )


def _who(thread) -> str:
    """Thread (3, 1, 0) as "thread (3, 1)": zeros at the end left out."""
    if thread is None:
        return "a thread"
    parts = list(thread)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return f"thread ({', '.join(map(str, parts))})" if len(parts) > 1 else f"thread {parts[0]}"


def _quote(where, ptx_line, source) -> str:
    if where is None:
        return f"PTX line {ptx_line}" if ptx_line else ""
    number = where[1]
    text = source.splitlines() if source else []
    if not 1 <= number <= len(text):
        return f"line {number}"
    code = text[number - 1].strip()
    words = f"{number}: {code}"
    return words if len(words) <= _FITS + 8 else words[: _FITS + 7] + "\u2026"
