"""Sets a Shadow beside a machine's chunk, as exact as its kernel needs."""

from emulator.sanitizer.device import DeviceMemory
from emulator.sanitizer.report import Places, source_name
from emulator.sanitizer.shadow import STRONG, Shadow
from emulator.text.program import WIDTHS


def watch(chunk, report):
    """The Shadow of a machine's chunk, or None for a kernel with no memory to watch."""
    size = chunk.shared.size
    if not size and chunk.launch.device is None:
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
    return Shadow(
        chunk.B,
        chunk.T,
        size,
        report,
        places,
        by_warp=by_warp,
        alive=lambda: chunk.lanes_of(chunk.alive),
    )


def watch_device(code, space, arrays, report, blocks, block):
    """The DeviceMemory of a launch, or None where nothing but one thread may access what is written.

    space: the AddressSpace. arrays: parameter -> its buffer. blocks: (n, 3) coordinates of the launch's
    blocks; block: its extents.
    """
    pointers = code.pointers
    named = {buffer.name: buffer for buffer in space.buffers}

    def buffers(sources):
        """The buffers that an address may point into; None for any."""
        found = pointers.of(sources)
        if found is None:
            return None
        known = [arrays.get(x) if isinstance(x, int) else named.get(x) for x in found]
        return {id(b): b for b in known if b is not None} or None

    written = {}
    for sources in pointers.writes.values():
        here = buffers(sources)
        if here is None:
            written = {id(b): b for b in space.buffers if b.name != "the parameters"}
            break
        written |= here
    threads = block[0] * block[1] * block[2]
    if not written or threads * len(blocks) == 1:
        return None
    watched, width = set(), 4
    for table in (pointers.reads, pointers.writes):
        for index, sources in table.items():
            here = buffers(sources)
            if here is None or not written.keys().isdisjoint(here):
                watched.add(index)
                width = min(width, WIDTHS.get(code.instructions[index].parts[-1], 4))
    return DeviceMemory(
        report, written.values(), watched, code, width, blocks, -(-threads // 32) * 32, block
    )  # fmt: skip


def _orders_some(ins):
    """Whether an instruction orders some warps of a block but not all."""
    if "mbarrier" in ins.parts or not STRONG.isdisjoint(ins.parts):
        return True
    if ins.parts[0] not in ("bar", "barrier") or "warp" in ins.parts or "cluster" in ins.parts:
        return False
    return "arrive" in ins.parts or len(ins.operands) > (3 if "red" in ins.parts else 1)
