"""Hazards, barriers that not all threads reach and lanes that are absent, in the kernel's own terms."""

import re

import numpy as np

from .explain import own_line, parameter_name, quoted
from .hazard_words import BETWEEN_BLOCKS, WITHIN_BLOCK, words_for


def explain_hazards(
    trace, source: str, file: str, hazards=None, case=None, kernel: str = ""
) -> tuple[str, ...]:
    """Headline, then each pair of source lines that race, once, in the lines of `file`.

    hazards: those of the trace unless told otherwise. case: what was launched; it gives elements their indices.
    kernel: its name, where the file is called otherwise.
    """
    kernel = kernel or file.removesuffix(".cu")
    headline, said = "", []
    for hazard in trace.hazards if hazards is None else hazards:
        words, did = words_for(hazard)
        headline = headline or words
        first = quoted(hazard.frames, source, file)
        second = quoted(hazard.other_frames, source, file)
        who = ""
        if hazard.kind == "global-race":
            did = BETWEEN_BLOCKS if hazard.other_block else WITHIN_BLOCK
            if _writes_twice(hazard):
                did = _one_place_twice(hazard, _place_in(case, hazard, source, kernel))
            else:
                who = _who_meets(hazard, _place_in(case, hazard, source, kernel))
        elif _writes_twice(hazard) and hazard.symbol != "shared memory":
            did = _one_place_twice(hazard, f"one place of {hazard.symbol}")
        elif hazard.kind == "uninitialised-read":
            name = "" if hazard.symbol in ("", "shared memory") else f" of {hazard.symbol}"
            did = did.replace("a place", f"a place{name}", 1)
            if not _fills_shared_memory(trace):
                did = "reads shared memory, and nothing in this kernel writes to it at this size"
        if hazard.kind == "uninitialised-register" and "wgmma" in source:
            did = (
                "uses a variable that was never given a value. The first product has to replace the sums (its last argument "
                "is false), or they have to begin with 0"
            )
        if first is None or (hazard.kind == "uninitialised-register" and second is not None):
            first, second = second, None  # where a variable is first read tells more
        if not who and first == second and hazard.kind in ("read-after-write", "write-after-read"):
            who = _who_meets(hazard, f"byte {hazard.offset} of {hazard.symbol}")
        if hazard.kind == "unfinished-copy" and first and first == second:
            did = (
                "is copied to while another copy to the same place is under way: a tile is fetched twice, or two tiles go to "
                "one buffer before the first has been waited for and read"
            )
        text = [first] if first else []
        text += [f"  {did}" + (":" if second else ".")] + ([second] if second else [])
        text += [f"  {who}"] if who else []
        if not any(text[:3] == other[:3] for other in said):
            said.append(text)
    said = [line for text in said[:3] for line in text]
    # Copies that meet reads, not other copies of the same statement.
    unfinished = [h for h in trace.hazards if h.kind == "unfinished-copy"]
    if any(own_line(h.frames, file) != own_line(h.other_frames, file) for h in unfinished):
        said += _waits(trace, source)
    return (headline, *said)


def _waits(trace, source: str) -> list[str]:
    """What the waits of this launch are for, where a copy by cp.async is used before it has landed."""
    if (
        not trace.rows("cp.async.c")
        or trace.rows("cp.async.mbarrier")
        or trace.rows("cp.async.bulk")
    ):
        return []
    waits, commits = trace.rows("cp.async.wait"), trace.rows("cp.async.commit")
    pipeline = "memcpy_async" in source  # it waits for nothing where nothing is committed
    commit = "producer_commit()" if pipeline else "cp_async_commit()"
    wait = "consumer_wait()" if pipeline else "cp_async_wait<n>()"
    if not waits and not commits:
        return [
            f"Nothing in this launch waits for its copies, or commits them: {commit} has to follow the copies, and {wait} that."
        ]
    if not waits:
        return [f"Nothing in this launch waits for its copies: {wait} is missing."]
    groups = [row for row in waits if "wait_group" in row.opcode]
    if not commits and len(groups) == len(waits):
        return [
            f"{wait} waits for groups, and these copies belong to none: {commit} has to follow them."
        ]
    threads = int(np.prod(trace.block)) * trace.blocks
    for rows, call, does in ((waits, wait, "waits for"), (commits, commit, "commits")):
        if any(row.threads % threads for row in rows):
            return [f"Not all threads come to {call}, and each thread {does} its own copies only."]
    left = max((int(row.text.rstrip(";").split()[-1]) for row in groups), default=0)
    if not left:
        return [
            "Each wait here waits for all copies that were committed before it. So this one was started, or committed, after the "
            "wait: it fills a buffer that is still in use, or the read belongs behind the next wait."
        ]
    newest = "newest group" if left == 1 else f"{left} newest groups"
    call = "consumer_wait()" if pipeline else f"cp_async_wait<{left}>()"
    begins = f"{call} does not wait for the {newest}."
    turns, committed = (sum(row.threads for row in rows) // threads for rows in (groups, commits))
    if 1 < turns and committed < turns + left:
        return [
            f"{begins} Each thread comes to it {turns} times, and commits {committed} groups: in the last turns nothing is "
            "committed, so the tile that is read then is in one of these. Commit in each turn, an empty group too, or let the "
            "last turns wait for all."
        ]
    return [
        f"{begins} Count the groups that are committed before that wait, those "
        "without a copy too: this copy is in one of the newest, or was started after the wait, into a buffer that is in use."
    ]


def _writes_twice(hazard) -> bool:
    """Whether two threads have stored to one place by the same statement."""
    if not hazard.frames or hazard.frames != hazard.other_frames or hazard.other_thread is None:
        return False
    if hazard.kind == "global-race":
        return hazard.verb == "writes" and hazard.did == "wrote"
    return hazard.kind in ("write-after-write", "unfinished-copy") and (
        hazard.thread != hazard.other_thread
    )


def _who_meets(hazard, place: str) -> str:
    """ "Thread (127, 0, 0) of block (3, 0, 0) writes element [0] of x, which thread (0, 0, 0) of block (0, 0, 0) reads." """
    if hazard.other_thread is None:
        return ""
    if hazard.kind == "global-race":
        does = hazard.verb or "touches"
        did = {"wrote": "writes", "read": "reads"}.get(hazard.did, "touches")
    else:
        does, did = (
            ("reads", "writes") if hazard.kind == "read-after-write" else ("writes", "reads")
        )
    one, two = _threads(hazard)
    return f"For example, {two} {did} {place}, and {one} {does} it."


def _threads(hazard) -> tuple[str, str]:
    """The two threads that meet, with their blocks where these differ."""
    other = hazard.other_block or hazard.block
    both = (hazard.block, hazard.thread), (other, hazard.other_thread)
    apart = hazard.block != other
    return tuple(f"thread {thread}" + f" of block {block}" * apart for block, thread in both)


def _one_place_twice(hazard, place: str) -> str:
    mine, other = _threads(hazard)
    if hazard.kind == "global-race":
        cure = "Either their indices have to differ, or the values have to be added up by atomics"
    elif hazard.did == "together":
        cure = "Their indices have to differ: look at how the index is computed"
    else:
        cure = "Either their indices have to differ, or a barrier is missing between the two"
    return f"stores to {place} by {other} and by {mine}, so one of two values is lost. {cure}"


def _place_in(case, hazard, source: str, kernel: str) -> str:
    """ "element [3, 5] of C", as far as that is known."""
    number = re.match(r"argument (\d+)", hazard.symbol)
    if number is None:
        return "one element"
    name = parameter_name(int(number[1]), source, kernel)
    array = case.args[int(number[1])] if case is not None else None
    if not isinstance(array, np.ndarray):
        return f"one element of {name}"
    at = np.unravel_index(hazard.offset // array.itemsize, array.shape)
    return f"element [{', '.join(str(int(i)) for i in at)}] of {name}"


def _fills_shared_memory(trace) -> bool:
    return any(
        (row.shared_wavefronts and row.opcode.startswith(("st", "cp.async", "atom", "red")))
        or row.opcode.startswith("cp.async.bulk")
        for row in trace.instructions
    )


_ALL_LANES = (" -1", " 0xffffffff", " 4294967295")  # a membermask


def absent_lanes(trace) -> list:
    """The shuffles that name all 32 lanes, and that some lanes of a warp do not come to."""
    texts = [row.text.rstrip("; ") for row in trace.instructions if row.opcode.startswith("mov")]
    sets = [text.split()[1].rstrip(",") for text in texts if text.endswith(_ALL_LANES)]
    return [
        row
        for row in trace.rows("shfl.sync")
        if row.text.rstrip("; ").endswith((*_ALL_LANES, *(f" {name}" for name in sets)))
        and row.threads < 32 * row.warps
    ]


def explain_absent(trace, source: str, file: str) -> tuple[str, ...]:
    lines = [quoted(row.frames, source, file) for row in absent_lanes(trace)]
    return (
        "a shuffle that not all lanes reach",
        *dict.fromkeys(filter(None, lines)),
        "The mask 0xffffffff names all 32 lanes of the warp, so all of them must make the call: no return and no "
        "`if` before it that only some lanes take. What an absent lane would have given is undefined.",
    )


def explain_uneven(trace, source: str, file: str) -> tuple[str, ...]:
    """Headline and lines for barriers that some threads of a block passed more often than others."""
    uneven = trace.uneven[0]
    times = np.asarray(uneven.times)
    few, often = int(times.argmin()), int(times.argmax())
    lines = []
    threads = len(times) * trace.blocks
    for row in trace.rows("bar"):
        if "warp" not in row.opcode and row.threads % threads:
            line = quoted(row.frames, source, file)
            if line and line not in lines:
                lines.append(line)
    return (
        "a barrier that not all threads reach",
        *lines[:2],
        f"block {uneven.block}: thread {_thread(few, trace.block)} comes to barriers {times[few]} times, "
        f"thread {_thread(often, trace.block)} {times[often]} times, and then returns",
        "Every thread of the block must come to each __syncthreads(), those beyond the edge too: no return and "
        "no `if` before or around it that only some threads take.",
    )


def _thread(number: int, block) -> tuple[int, int, int]:
    x, y, _ = (*block, 1, 1)[:3]
    return number % x, number // x % y, number // (x * y)
