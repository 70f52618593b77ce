"""Sets a Shadow beside a machine's chunk, as exact as its kernel needs."""

from emulator.sanitizer.asynchronous import AsyncShadow
from emulator.sanitizer.report import Places, source_name
from emulator.sanitizer.shadow import STRONG, Shadow

_BESIDE = {"mbarrier", "mbarrier_init", "bulk", "wgmma", "proxy", "cluster", "mapa",
           "mbarrier::complete_tx::bytes"}  # fmt: skip


def watch(chunk, report):
    """The Shadow of a machine's chunk, or None for a kernel without shared memory."""
    size = chunk.shared.size
    if not size:
        return None
    names = sorted((start, source_name(name)) for name, start in chunk.code.shared_symbols.items())
    ends = [*(start for start, _ in names[1:]), size][: len(names)]  # dynamic memory may go unused
    symbols = [(name, start, end - start) for (start, name), end in zip(names, ends, strict=True)]
    by_warp = any(_orders_some(ins) for ins in chunk.code.instructions.values())
    x, y, _ = chunk.launch.block
    places = Places(
        tuple(symbols),
        block_of=lambda b: tuple(int(i) for i in chunk.blocks[b]),
        thread_of=lambda t: (t % x, t // x % y, t // (x * y)),
    )
    if chunk.cluster > 1 or any(_is_beside(ins) for ins in chunk.code.instructions.values()):
        return AsyncShadow(chunk, report, tuple(symbols))
    return Shadow(
        chunk.B,
        chunk.T,
        size,
        report,
        places,
        by_warp=by_warp,
        alive=lambda: chunk.lanes_of(chunk.alive),
    )


def _is_beside(ins):
    """Whether an instruction belongs to mbarriers, bulk copies, wgmma, proxies or clusters."""
    return not _BESIDE.isdisjoint(ins.parts)


def _orders_some(ins):
    """Whether an instruction orders some warps of a block but not all."""
    if "mbarrier" in ins.parts or not STRONG.isdisjoint(ins.parts):
        return True
    if ins.parts[0] not in ("bar", "barrier") or "warp" in ins.parts or "cluster" in ins.parts:
        return False
    return "arrive" in ins.parts or len(ins.operands) > (3 if "red" in ins.parts else 1)
