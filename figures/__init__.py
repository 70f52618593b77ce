"""Draws: plain data in, a figure that shows itself out. No input or output, no compiling.

Every function returns something that a cell can end with. It shows itself as HTML that follows the page's light or
dark theme, with a title that states the finding, a caption and alt text, and prints as plain text; `.facts` holds the
numbers that it shows, `.figure` the canvas; `png(it)` is a picture for a README. Many take a `title=`, some a `caption=`,
in place of what they say by themselves. A ValueError says what cannot be drawn.

From a trace (an `access` is one of `trace.accesses(row)`, a `figures.Access`, or 32 byte addresses; a mapping of names
to accesses draws them one below the other):

    global_access({"uncoalesced": access, "naive": other})   lanes -> addresses -> 32-byte sectors
    shared_banks(access, rows="lane" | "wavefront")          lanes x 32 banks, coloured by wavefront, or the reverse
    annotated_source(trace, text_of_the_cu_file)             what each line cost
    hazard(trace.hazards[0], text_of_the_cu_file)            two accesses that no barrier orders

From sources, macros and layouts:

    cuda(source("naive"))                                    a listing, highlighted
    diff_source(before, after, ("naive", "tiled"), context=2)
    tile_picture({"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "TM": 8, "TN": 4}, atom=None, name="warp_tiled")
    thread_tiles([(1, 1), (4, 1), (4, 4)])                   reads and multiply-adds of one thread at one step of k
    fragment(SM80_16x8x16_F32F16F16F32_TN, operands="ABC", lane=None)     who holds what of an MMA
    layout_grid(Layout((8, 8), (8, 1)))                      any layout; color="bank" for shared memory
    layout_grid(thread_value_layout, (16, 8), cells="tv")    thread and value of each element of a tile
    swizzle_grid(chunks=4, pad_bytes=16, swizzled=(2, 3, 3))  unpadded, padded and swizzled, side by side
    data_path(chunks=4)                                      global memory to mma: who copies, points, receives
    tensor_box((12, 10), (8, 8), at=(2, 1), swizzle=128)     one copy by TMA: a box of a matrix, and shared memory
    core_matrices({"A": {"start": 0, "stride": 1024}})       what descriptors of wgmma walk in shared memory
    descriptor_fields(0, leading=16, stride=1024, swizzle=128)    the 64 bits of a descriptor
    warpgroup_tiles(columns=128, groups=2)                   what warpgroups multiply, and who holds which sums
    tensor_memory({"sums": (0, 256)})                        Blackwell's lanes and columns: what is taken, who reaches what
    cta_pair(n=256)                                          two blocks that multiply as one: who loads which half of B
    roles_timeline(stages=4, consumers=2)                    a model of producer and consumers over time
    bit_fields({"float32": (1, 8, 23)})                      the bits of number formats
    sector_copies({"padded": lambda row, chunk: 5 * row + chunk})   copies to shared memory, sectors coloured
    tile_order(order_of_tiles, at_once=132)                  which tiles of C run together, and what they read

From measurements:

    ladder(rows, limits={"float32": 66.9}, machine="NVIDIA H100", recorded="2026-11-21")
    roofline({"naive": (0.5, 1.2)}, bandwidth=3.35, peaks={"FP32": 66.9}, kinds={"naive": "float32"})
    waterfall({"base": 41.3, "warp tiles": 47.0})            what each step of a change bought
    timeline([{"row": "tensor core", "start": 0, "end": 32, "kind": "compute", "stage": 0}])     who does what when
    machine(rows_of_results_machine, {"gpu": "NVIDIA H100", "sms": 132})     the memories, with latency and bandwidth
    ladder_strip({"naive": 6.6, "tiled": 9.1}, here=["tiled"])     the ladder in miniature: where a chapter stands
    strips({2: [40.1, 41.0], 3: [44.2]}, "STAGES")           what a tuner found, one row of dots for each value
    table({"": "", "sectors": "32-byte pieces of global memory"}, [["naive", 4]])   columns that explain themselves
    bars({"clock round everything": 47.3, "events": 0.2}, unit="ms", parts={...}, highlight=[...])

That the reader moves, with or without a kernel, a network or a widget manager (keyword arguments are the start):

    BankExplorer(width=4, row=32, pad=0, cases={"As": access})    CoalescingExplorer(width=4, stride=1, cases=...)
    TileExplorer(bm=128, bn=128, bk=16)    OccupancyExplorer(threads=256, registers=64, shared=16)
    FragmentExplorer(lane=5)               SwizzleExplorer(b=2, m=3, s=3, chunks=4)
    LayoutExplorer({"row-major": Layout((4, 8), (8, 1))}, color="index" | "bank 4" | "bank 2")
    PipelineExplorer(stages=2, load=3, compute=1)
    TensorBoxExplorer(y=2, x=1, swizzle=128)    CoreMatrixExplorer("K", start=0, stride=1024)
    BarrierExplorer(count=1, events="e c e c")  RolesExplorer(stages=4, consumers=2)
    TensorMemoryExplorer(columns=256, sets=2)   TcgenBitsExplorer("instruction" | "matrix")
    ScaleExplorer(block=16, row=37, k=70)       CtaPairExplorer("yes", n=256)
    SettingsExplorer({"BM": (64, 128)}, {(64,): rows, (128,): rows}, (64,))    counts at each setting of a kernel
    WaveExplorer(tiles=9, sms=8, way="stream-K")     RasterExplorer(size=8192, blocks=128, group=16)
    Choice({pad: shared_banks(run(pad)) for pad in (0, 1, 2)}, name="padding", title="...")    drawings to flip through

A figure is its file: whatever a module of this folder names in its `__all__` is exported here.
"""

import importlib
import pkgutil


def drawings() -> dict[str, object]:
    """{name: function or class} that the modules of this folder offer."""
    modules = [
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
    ]
    return {
        name: getattr(module, name)
        for module in modules
        for name in vars(module).get("__all__", ())
    }


globals().update(drawings())
__all__ = sorted(drawings())
