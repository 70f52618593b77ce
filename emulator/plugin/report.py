"""The lines at the end of a run: what ran, what was wrong, what was refused, and what stands behind the emulator's word."""

from collections import Counter

from .compared import result_measured, traffic_measured


class Report:
    def __init__(self):
        self.tests: dict[str, tuple] = {}  # node -> (outcome, what `Record.plain` gave)
        self.outcomes: dict[str, str] = {}
        self.files: list[str] = []  # why a file was not even read

    def add(self, report) -> None:
        if report.outcome != "passed" or report.when == "call":
            marked = report.outcome == "skipped" and hasattr(report, "wasxfail")
            self.outcomes.setdefault(report.nodeid, "marked" if marked else report.outcome)
            if report.outcome == "failed":
                self.outcomes[report.nodeid] = "failed"
        if found := getattr(report, "emulated", None):
            self.tests[report.nodeid] = (self.outcomes.get(report.nodeid, "passed"), found)

    def show(self, out) -> None:
        if not self.tests and not self.files:
            return
        out.section("emulated GPU")
        for line in self.lines():
            out.line(line)

    def lines(self):
        records = [record for _, record in self.tests.values()]
        ran = [(outcome, record) for outcome, record in self.tests.values() if record["launches"]]
        kernels = {name for _, record in ran for name in record["kernels"]}
        launches = sum(record["launches"] for record in records)
        seconds = sum(record["seconds"] for record in records)
        yield f"{launches} launches of {len(kernels)} kernels in {len(ran)} tests, {seconds:.1f} s of processor time"
        outcomes = Counter(outcome for outcome, _ in ran)
        outcomes_of_all = Counter(outcome for outcome, _ in self.tests.values())
        count = outcomes["marked"]
        marked = f", {count} failed as they are marked to" if count else ""
        yield (
            f"of these {outcomes['passed']} passed, {outcomes['failed']} failed{marked}, "
            f"{outcomes['skipped']} were refused on the way"
        )
        empty = outcomes_of_all["passed"] - outcomes["passed"]
        if empty:
            yield f"{empty} test{'s' * (empty > 1)} passed without a kernel: that says nothing of kernels"
        hazards = [text for record in records for text in record["wrong"]]
        wrong = sum(bool(record["wrong"]) for record in records)
        yield f"{len(hazards)} hazards and faults in {wrong} tests"
        notes = Counter(text for record in records for text in record["notes"])
        for text, count in notes.most_common(5):
            yield f"  noted, not failed ({count}): {text.splitlines()[0]}"
        refused = Counter(reason for record in records for reason in record["refused"][:1])
        if refused:
            yield f"{refused.total()} tests refused:"
            for reason, count in refused.most_common():
                yield f"  {count:4} {reason}"
        yield from (f"a whole file: {reason}" for reason in self.files)
        executed = Counter()
        for record in records:
            executed.update(record["opcodes"])
        if executed:
            yield from _behind(executed)


def _behind(executed: Counter):
    """Which of the executed instructions were ever compared with a GPU."""
    plain, results = (
        [o for o in sorted(executed) if result_measured(o) is how] for how in (False, True)
    )
    counts = [opcode for opcode in sorted(executed) if traffic_measured(opcode)]
    yield f"{len(executed)} kinds of instruction were executed, all of them modelled:"
    yield f"  result compared with an H200's, bit for bit or in ulps: {', '.join(results) or 'none'}"
    yield f"  result by the PTX ISA, tested against NumPy alone: {', '.join(plain) or 'none'}"
    yield f"  memory traffic compared with a GPU's counters: {', '.join(counts) or 'none'}"
