"""Hazards of TMA, wgmma, tensor memory and clusters in words: what went wrong, and what mends it."""

from __future__ import annotations

from dataclasses import replace

from emulator.sanitizer import report
from emulator.sanitizer.report import Hazard, Report, Seen, hazard_of, place_of, where

_TEXTS = {
    "unfinished-copy": (
        "{who} touches {what} {here} while the bulk copy issued {there} is under way: nobody of its block "
        "has waited for the phase of the mbarrier that counts its bytes{early}"
    ),
    "read-after-bulk": (
        "{who} reads {what} {here}, which the copy issued {there} brought; others have waited for it, but "
        "this thread neither waited for that phase of the mbarrier nor meets those who did: wait for it"
    ),
    "unfinished-read": (
        "{who} writes {what} {here} while {reader} may still read it: {cure} before it is written again, "
        "and the writer has to wait for that"
    ),
    "write-after-lane": (
        "{who} overwrites {what} {here}, which the copy out of shared memory {there} read; another lane of its warp "
        "has waited for that, and the warp does not synchronise in between: __syncwarp() after the wait"
    ),
    "write-after-agent": (
        "{who} overwrites {what} {here} after {reader} read it, but does not wait for whoever waited for "
        "that: arrive at an mbarrier after {after}, and wait for it here"
    ),
    "missing-proxy-fence": (
        "{who} has {what} read by the async proxy {here}; {by} wrote it {there} by the generic proxy, and "
        "no fence.proxy.async stands between: put one after the write, before the barrier"
    ),
    "missing-proxy-fence-into": (
        "{who} has a copy write {what} {here}; {by} wrote it {there} by the generic proxy, and no fence.proxy.async "
        "stands between, so that either may come last: put one after the write, before the barrier"
    ),
    "missing-proxy-fence-over": (
        "{who} has an answer written to {what} {here}; {by} read the one before {there} by the generic proxy, and no "
        "fence.proxy.async stands between: put one after the read, before the reader says that it is done"
    ),
    "wrong-swizzle": (
        "{who} reads {what} {here} as if it were swizzled {asked}; the copy that filled it had a tensor "
        "map with swizzle {swizzle}: descriptor and tensor map must agree"
    ),
    "missing-init-fence": {
        "relaxed": (
            "{who} lets a copy count at the mbarrier {what} {here}, which was initialised {there} without a "
            "fence.mbarrier_init (or fence.proxy.async) after it: the copy may not see it"
        ),
        "released": (
            "{who} lets a copy count at the mbarrier {what} {here}, which was initialised {there} without a "
            "fence.mbarrier_init (or fence.proxy.async) after it: by the PTX ISA the copy may not see it. Many kernels "
            "leave it out and run: Triton's without clusters, others whose clusters meet by release and acquire"
        ),
    },
    "exit-before-copy": {
        "load": (
            "the copy into shared memory issued {here} is under way when the block ends: wait for its "
            "mbarrier before the end"
        ),
        "store": (
            "{who} ends while the copy issued {here} may still read its shared memory: "
            "cp.async.bulk.wait_group.read 0 before the end"
        ),
    },
    "exited-block": (
        "{who} reaches into the shared memory of block {target} {here}; that block may have ended: let it "
        "wait (barrier.cluster, or for the mbarrier that is arrived at) before it ends"
    ),
    "unfinished-wgmma": (
        "{who} {did} accumulators {here} while the wgmma {there} is under way: "
        "wgmma.wait_group must come before"
    ),
    "overwritten-fragment": (
        "{who} writes a register {here} that holds a fragment of A for the wgmma {there}, which is under "
        "way: wgmma.wait_group must come before"
    ),
    "missing-wgmma-fence": (
        "{who} starts a wgmma {here} on registers that were touched {there}, and no wgmma.fence stands "
        "between: put one before the first wgmma"
    ),
    "uncommitted-wgmma": (
        "{who} ends with wgmma under way that was started {here}: wgmma.commit_group and "
        "wgmma.wait_group must come before the results are there"
    ),
    "unfinished-product": (
        "{who} touches columns of tensor memory {here} that the tcgen05 {there} may still be writing: its thread "
        "must commit it to an mbarrier, and whoever touches them must wait for that phase or be told by one who did"
    ),
    "unordered-columns": (
        "{who} touches columns of tensor memory {here} that another warp accessed {there}; nothing orders the two: "
        "no barrier and no mbarrier stands between"
    ),
    "uninitialised-column": (
        "{who} reads columns of tensor memory {here} that nobody has written; a first product needs "
        "enable-input-d false"
    ),
    "missing-tcgen05-fence": {
        "after": (
            "{who} touches columns of tensor memory {here} after it was told that the access {there} is over, but no "
            "tcgen05.fence::after_thread_sync stands between: put one after the wait or barrier"
        ),
        "before": (
            "{who} touches columns of tensor memory {here} that another thread accessed {there}, which executed no "
            "tcgen05.fence::before_thread_sync between that and the barrier or arrival: put one before it"
        ),
    },
    "missing-tcgen05-wait": (
        "{who} touches columns of tensor memory {here} while the tcgen05.{did} {there} may still be under way: "
        "tcgen05.wait::{did} must follow that"
    ),
    "unfinished-tensor-load": (
        "{who} uses a register {here} that the tcgen05.ld {there} may still be loading: by the PTX ISA tcgen05.wait::ld must "
        "come before"
    ),
    "two-writers": (
        "{who} starts a tcgen05 {here} that writes columns of tensor memory which another thread's, started {there}, is "
        "writing: commit that to an mbarrier and wait for it, or let one thread issue both"
    ),
    "early-dealloc": (
        "{who} deallocates columns of tensor memory {here} that the access {there} may still use: a barrier must "
        "come between"
    ),
    "leaked-columns": (
        "{who} ends and leaves {did} of tensor memory allocated {here}: tcgen05.dealloc must come before the end"
    ),
    "uncommitted-product": (
        "{who} ends, and nobody has waited for the tcgen05 that it started {here}: commit it to an mbarrier and wait "
        "for that before the end"
    ),
    "unstarted-block": (
        "{who} reaches into the shared memory{target} {here}, and nothing says that this block has begun: "
        "barrier.cluster must come before"
    ),
    "unmade-barrier": (
        "{who} names the mbarrier {what}{target} {here}, and nothing orders that after its mbarrier.init {there}: "
        "a barrier must come between; for another block a fence.mbarrier_init, and then barrier.cluster"
    ),
    "shared-barrier": {
        "more": (
            "{who} goes on {here} at barrier {number}, at which more threads stand than it counts: which of them meet "
            "is a matter of luck. Groups that do not belong together need barriers of their own"
        ),
        "again": (
            "{who} arrives {here} at barrier {number}, where it has arrived before, {there}, and nobody has gone on "
            "since: wait for the others in between"
        ),
        "others": (
            "{who} comes to barrier {number} {here}, where others met before, {there}, and nothing orders it after that: "
            "it may be counted among them. Groups that do not belong together need barriers of their own"
        ),
        "counts": (
            "{who} names barrier {number} {here} with another count of threads than those who are there: all of them "
            "must name the same"
        ),
    },
    "unchecked-wait": (
        "{who} tries {here} to wait for the mbarrier {what}, and the kernel does not look whether the phase is over: "
        "mbarrier.{did} does not wait for it, so it must be repeated until its answer is true"
    ),
    "surplus-arrival": (
        "{who} arrives {here} at the mbarrier {what}{target}, whose phase has all the {did} arrivals that it counts by "
        "others in the same instruction: this one is of the next phase. Does it count as many as arrive?"
    ),
    "remade-barrier": {
        "": (
            "{who} initialises the mbarrier {what} {here}, which was initialised {there} and is in use: once is enough, "
            "as its phases go on by themselves; else mbarrier.inval must come before"
        ),
        "lanes": "{who} and others of its block initialise the mbarrier {what} {here}: one thread must, alone",
        "used": (
            "{who} ends or makes the mbarrier {what} {here}, which others use {there}, and nothing orders that before: "
            "a barrier must come between"
        ),
    },
    "overwritten-barrier": (
        "{who} writes over the mbarrier {what} {here}, which was initialised {there}: mbarrier.inval must come before"
    ),
    "foreign-lanes": (
        "{who} names lanes of tensor memory {here} that are warp 0's; it gets its own warp's, {did}, as on a B200, but by the "
        "PTX ISA the address must name them"
    ),
}  # fmt: skip
# What is against the letter of the PTX ISA, but done by kernels that ship.
_NOTES = {("missing-init-fence", "released")}
_CURES = {
    "tcgen05": (
        "the tcgen05 {there}",
        "a wait for the mbarrier that its tcgen05.commit arrives at must come",
        "the wait for its tcgen05.commit",
    ),
    "wgmma": ("the wgmma {there}", "wgmma.wait_group must come", "wgmma.wait_group"),
    "bulk read": (
        "the copy out of shared memory {there}",
        "cp.async.bulk.wait_group.read must come",
        "cp.async.bulk.wait_group.read",
    ),
}


def describe(kind: str, seen: Seen, early=None, swizzle=()) -> Hazard:
    """A Hazard; kinds that are not this module's are `report.describe`'s.

    early: the wait by which the thread passed at once, if it did. swizzle: of the tensor map.
    """
    did = seen.did
    text = kind
    if kind == "unfinished-copy" and did != "bulk":
        text = None
    elif kind == "read-after-write" and did == "bulk":
        text = "read-after-bulk"
    elif kind == "write-after-read" and did == "lanes":
        text = "write-after-lane"
    elif kind == "write-after-read" and did in _CURES:
        text = "write-after-agent"
    elif kind == "missing-proxy-fence" and did == "over":
        text = "missing-proxy-fence-over"
    elif kind == "missing-proxy-fence" and did == "into":
        text = "missing-proxy-fence-into"
    if text not in _TEXTS:
        return report.describe(kind, seen)
    reader, cure, after = (
        s.format(there=where(seen.earlier)) for s in _CURES.get(did, ("", "", ""))
    )
    more = {"reader": reader, "cure": cure, "after": after, "early": "", "asked": "", "swizzle": ""}
    if early is not None:
        more["early"] = (
            f". Its own wait {where(early)} passed at once, for a phase that was over before: "
            "is its parity right?"
        )
    if swizzle:
        more["swizzle"] = swizzle[0]
        more["asked"] = "otherwise"
    return replace(_hazard(kind, _TEXTS[text], seen, more), early=early is not None)


def tell(found: Report, kind: str, seen: Seen, detail=None, **more) -> None:
    """Adds a hazard to a Report, or counts it where it is known."""
    key = (kind, place_of(seen.instruction), place_of(seen.earlier))
    if key not in found.found:
        text = _TEXTS[kind]
        if isinstance(text, dict):
            text = text[detail]
        hazard = _hazard(kind, text, seen, {"target": detail, "did": detail, **more})
        found.found[key] = replace(hazard, note=(kind, detail) in _NOTES)
    found.found[key].count += 1


def _hazard(kind: str, text: str, seen: Seen, more: dict) -> Hazard:
    words = text.format(
        who=f"thread {seen.one}",
        by=seen.by,
        what=seen.what,
        here=where(seen.instruction),
        there=where(seen.earlier),
        **more,
    )
    return hazard_of(kind, words, seen)
