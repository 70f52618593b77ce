"""Sets a Shadow beside a machine's chunk, as exact as its kernel needs."""

from emulator.sanitizer.asynchronous import AsyncShadow
from emulator.sanitizer.device import DeviceMemory
from emulator.sanitizer.made import Made, ends_some
from emulator.sanitizer.meetings import Meetings
from emulator.sanitizer.report import Places, source_name
from emulator.sanitizer.shadow import STRONG, Shadow
from emulator.text.program import WIDTHS

_BESIDE = {"mbarrier_init", "bulk", "wgmma", "proxy", "cluster", "mapa", "tcgen05",
           "mbarrier::complete_tx::bytes"}  # fmt: skip


def watch(chunk, report):
    """The Shadow of a machine's chunk, or None for a kernel with no memory to watch."""
    size = chunk.shared.size
    if not size and chunk.launch.device is None:
        return None
    names = sorted((start, source_name(name)) for name, start in chunk.code.shared_symbols.items())
    ends = [*(start for start, _ in names[1:]), size][: len(names)]  # dynamic memory may go unused
    symbols = [(name, start, end - start) for (start, name), end in zip(names, ends, strict=True)]
    if chunk.code.reserved:
        start = chunk.reserved_start
        ends[-1:] = [start] if ends else []
        symbols = [(n, s, min(e, start) - s) for (s, n), e in zip(names, ends, strict=True)]
        symbols.append(("the system's part of shared memory", start, size - start))
    instructions = chunk.code.instructions.values()
    roots = {ins.parts[0] for ins in instructions}
    flags = "atom" in roots or "red" in roots
    by_warp = any(_orders_some(ins) for ins in instructions)
    by_warp |= flags and ("membar" in roots or "fence" in roots)
    x, y, _ = chunk.launch.block
    places = Places(
        tuple(symbols),
        block_of=lambda b: tuple(int(i) for i in chunk.blocks[b]),
        thread_of=lambda t: (t % x, t // x % y, t // (x * y)),
    )
    if chunk.cluster > 1 or any(_is_beside(ins) for ins in chunk.code.instructions.values()):
        shadow = AsyncShadow(chunk, report, tuple(symbols), _in_step(chunk.code.blocks))
        return _completed(shadow, chunk, size)
    shadow = Shadow(
        chunk.B,
        chunk.T,
        size,
        report,
        places,
        by_warp=by_warp,
        alive=lambda: chunk.lanes_of(chunk.alive),
        warp_synchronous=_in_step(chunk.code.blocks),
    )
    if any("mbarrier" in ins.parts for ins in instructions):
        shadow.made = Made(shadow, chunk.B, chunk.T, ends=ends_some(chunk.code))
    return _completed(shadow, chunk, size)


def _completed(shadow, chunk, size):
    """A Shadow with what else its kernel needs."""
    shadow.meetings = _meetings(shadow, chunk)
    if any("relaxed" in ins.parts for ins in chunk.code.instructions.values()):
        shadow.heed_fences()
    if chunk.code.reserved:
        shadow.filled(chunk.reserved_start, size - chunk.reserved_start)
    return shadow


def _meetings(shadow, chunk):
    """What watches named barriers, in kernels with one that counts."""
    counting = any(
        ins.parts[0] in ("bar", "barrier")
        and not {"warp", "cluster"} & set(ins.parts)
        and len(ins.operands) > (3 if "red" in ins.parts else 1)
        for ins in chunk.code.instructions.values()
    )
    return Meetings(shadow, chunk.B, chunk.T, chunk.cluster) if counting else None


def _in_step(blocks):
    """The volatile loads and stores, but for loads that poll: in a loop that writes nothing."""
    found = set()
    for block in blocks:
        for ins in block.code:
            if "volatile" in ins.parts and not (ins.parts[0] == "ld" and _loops(blocks, block)):
                found.add(ins.index)
    return frozenset(found)


def _loops(blocks, start):
    """Whether a block may come again without anything being written or waited for."""
    seen, work = set(), [start]
    while work:
        block = work.pop()
        if any(ins.parts[0] in ("st", "atom", "red", "bar", "barrier") for ins in block.code):
            continue
        if start.index in block.targets:
            return True
        fresh = [target for target in block.targets if target not in seen]
        seen.update(fresh)
        work.extend(blocks[target] for target in fresh)
    return False


def watch_device(code, space, arrays, maps, tiled, report, blocks, block):
    """The DeviceMemory of a launch, or None where nothing but one thread may access what is written.

    space: the AddressSpace. arrays: parameter -> its buffers. maps: the parameters that hold tensor maps; tiled: those,
    `boxes.Mapped`. blocks: (n, 3) coordinates of the launch's blocks; block: its extents.
    """
    pointers = code.pointers
    changed = any(ins.parts[0] == "tensormap" for ins in code.instructions.values())
    named = {buffer.name: buffer for buffer in space.buffers}

    def buffers(index, sources):
        """The buffers that an address of an instruction may point into; None for any."""
        found = pointers.of(sources)
        if found is None:
            return None
        if "tensor" in code.instructions[index] and (changed or not maps.issuperset(found)):
            return None  # a map that the kernel has put somewhere, or changed
        known = [b for x in found if isinstance(x, int) for b in arrays.get(x, ())]
        known += [named[x] for x in found if not isinstance(x, int) and x in named]
        return {id(b): b for b in known} or None

    written = {}
    for index, sources in pointers.writes.items():
        here = buffers(index, sources)
        if here is None:
            written = {id(b): b for b in space.buffers if b.name != "the parameters"}
            break
        written |= here
    threads = block[0] * block[1] * block[2]
    if not written or (threads * len(blocks) == 1 and not changed):
        return None
    watched, width = set(), 4
    for one in tiled:
        if changed or any(b.start <= one.start < b.end for b in written.values()):
            width = min(width, one.map.itemsize)
    for table in (pointers.reads, pointers.writes):
        for index, sources in table.items():
            here = buffers(index, sources)
            if here is None or not written.keys().isdisjoint(here):
                watched.add(index)
                width = min(width, WIDTHS.get(code.instructions[index].parts[-1], 4))
    return DeviceMemory(
        report, written.values(), watched, code, width, blocks, -(-threads // 32) * 32, block
    )  # fmt: skip


def _is_beside(ins):
    """Whether an instruction belongs to bulk copies, wgmma, proxies or clusters."""
    return not _BESIDE.isdisjoint(ins.parts)


def _orders_some(ins):
    """Whether an instruction orders some warps of a block but not all."""
    if "mbarrier" in ins.parts or not STRONG.isdisjoint(ins.parts):
        return True
    if ins.parts[0] not in ("bar", "barrier") or "warp" in ins.parts or "cluster" in ins.parts:
        return False
    return "arrive" in ins.parts or len(ins.operands) > (3 if "red" in ins.parts else 1)
