"""What each kind of hazard is called in a verdict, and what the later access did to the earlier one."""

from emulator.sanitizer.report import KINDS

# Kind of hazard: headline, and what the later access (its line first) did to the earlier one. Of the kinds that are not here,
# which hardly an exercise brings about, the emulator's own sentence says that, with the cure.
_TOLD = {
    "read-after-write": "a race: reads what another thread has just written, and nothing made it wait",
    "write-after-read": "a race: overwrites what another thread may still be reading",
    "write-after-write": "a race: writes where another thread has just written",
    "uninitialised-read": "a read of shared memory that nobody has written: reads a place that nobody has filled: is it "
    "the place, and the buffer, that were filled (row length, offset, order)? A thread with nothing to load or to copy has to "
    "store a 0, a copy has to bring all of its bytes, and `+=` needs something to add to",
    "unfinished-copy": "a race with a copy: touches what an asynchronous copy has not finished writing",
    "uninitialised-register": "a variable that was never given a value: uses a variable that was never given a value; a sum "
    "begins with 0, an accumulator fragment with wmma::fill_fragment",
    "global-race": "a race on global memory: ",
    "undefined-shuffle": "a value from a lane that took no part: uses what a shuffle brought from a lane that had left, or "
    "that the mask does not name: that value is undefined",
    "membermask": "a mask that is not of the lanes that come: names lanes in its mask that do not execute it, or leaves out "
    "lanes that do",
    "unfinished-read": "a tile overwritten while it is read: writes to shared memory that an asynchronous copy or a product "
    "may still be reading. Wait for that (wgmma_wait, tma_store_wait_read), and let the writer wait for whoever waited",
    "missing-proxy-fence": "a fence of the async proxy is missing: lets TMA or wgmma read what threads have written. Each "
    "thread that wrote has to call async_fence() after its stores, before the barrier",
    "wrong-swizzle": "descriptor and tensor map disagree: reads a tile with another swizzle than that of the tensor map "
    "that filled it",
    "missing-init-fence": "the fence after barrier_init is missing: lets a copy count at an mbarrier that it may not see "
    "yet. barrier_init_fence() has to follow barrier_init",
    "exit-before-copy": "the kernel ends before its copy: starts a copy that nobody has waited for when the block ends",
    "exited-block": "a block that may have ended: reaches into the shared memory of another block, which may have ended. "
    "That block has to wait at its end",
    "unfinished-wgmma": "sums that are not finished: touches the sums of a product that is under way. wgmma_commit() and "
    "wgmma_wait<0>() have to come before",
    "missing-wgmma-fence": "the fence before the product is missing: starts a product on registers that the threads have "
    "just used. wgmma_fence() has to come before the first product",
    "uncommitted-wgmma": "a product that nobody waited for: starts a product, and the kernel ends without wgmma_commit() "
    "and wgmma_wait<0>() after it",
    "unfinished-product": "sums touched before the product is done: touches columns of tensor memory that a product still "
    "writes: commit it, and wait for the mbarrier",
    "uncommitted-product": "a product that nobody waited for: starts a product, and the kernel ends before anybody has "
    "waited for its commit",
    "unordered-columns": "a race on tensor memory: touches columns of tensor memory that another warp uses, and nothing "
    "made it wait",
    "uninitialised-column": "columns that nobody has written: reads columns of tensor memory before anything was put there",
    "missing-tcgen05-fence": "a fence of tensor memory is missing: touches columns that another thread used, without "
    "tcgen05.fence before and after the meeting of the two",
    "early-dealloc": "columns given back too early: deallocates columns of tensor memory that others may still use: a "
    "barrier has to come before",
    "unstarted-block": "a block that may not have begun: reaches into the shared memory of another block, which may not "
    "have begun. The cluster has to meet first",
    "unmade-barrier": "an mbarrier that may not be there yet: uses an mbarrier that another thread initialises, and nothing "
    "orders the two: a barrier of the block, or of the cluster, has to stand between",
    "shared-barrier": "a named barrier of several groups: comes to a named barrier where others meet who do not belong to "
    "it, or with another count than theirs",
    "leaked-columns": "columns that nobody gave back: allocates columns of tensor memory, and the kernel ends without "
    "tcgen05.dealloc",
    "foreign-lanes": "an address of another warp's lanes: names lanes 0 to 31 of tensor memory from a warp that has others: "
    "the warp's first lane is missing in the address",
}
HAZARDS = {kind: (kind.replace("-", " "), "") for kind in KINDS}
HAZARDS |= {kind: tuple(told.split(": ", 1)) for kind, told in _TOLD.items()}

BETWEEN_BLOCKS = (
    "touches what a thread of another block reads or writes; blocks run in any order, so which of them comes "
    "first is left to chance"
)

WITHIN_BLOCK = (
    "touches what another thread of its block reads or writes, and no barrier stands between"
)


def words_for(hazard) -> tuple[str, str]:
    """Headline, and what the later access did. What TMA and wgmma add to older kinds has words of its own."""
    headline, did = HAZARDS[hazard.kind]
    did = did or hazard.message.partition(": ")[2]  # behind its kind and its block
    if hazard.did == "wgmma" and hazard.kind == "write-after-read":
        did = (
            "overwrites what a product has read, and this thread has not waited for those who waited for the product. "
            "After wgmma_wait they have to meet it, at a barrier (__syncthreads, named_barrier) or by an mbarrier"
        )
    elif hazard.early:
        headline = "a wait with the wrong parity"
        did = (
            "touches what a copy has not finished writing. The wait before it passed at once, for a phase that was over "
            "before, so its parity is wrong"
        )
    elif hazard.kind == "unfinished-copy" and hazard.did == "bulk":
        did = "touches what a copy by TMA has not finished writing, and nobody has waited for the phase of its mbarrier"
    elif hazard.kind == "read-after-write" and hazard.did == "bulk":
        headline = "a tile read by a thread that has not waited"
        did = "reads what a copy by TMA brought. Others have waited for its mbarrier, but this thread has not"
    return headline, did
