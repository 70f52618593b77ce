"""Hazards of single lanes: of what they hold, and of how they call the others of their warp."""

import numpy as np

from emulator.sanitizer.report import Hazard, frames_of, place_of, source_of


def note(m, kind, lanes, ins, words, earlier=None, symbol=""):
    """Puts a hazard of these lanes, (B, T) bool, at this instruction into the launch's report.

    words: what the thread does wrong, from a function, asked once for each place. earlier: the instruction
    that brought it about, if there is one; symbol: of what.
    """
    count, report = int(np.count_nonzero(lanes)), m.launch.report
    if not count or report is None:
        return
    key = (kind, place_of(ins))
    if key not in report.found:
        place = m.place_of(ins, *divmod(int(lanes.reshape(-1).argmax()), m.T))
        report.found[key] = Hazard(
            kind,
            f"{kind} in block {place['block']}: thread {place['thread']} {words()}",
            source_of(ins),
            source_of(earlier),
            ins.line,
            getattr(earlier, "line", None),
            place["block"],
            place["thread"],
            None,
            0,
            symbol,
            0,
            frames=frames_of(ins),
            other_frames=frames_of(earlier),
        )
    report.found[key].count += count
