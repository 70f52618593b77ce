"""What names a mistake rightly: of each kind of mistake, the kinds of hazard or error that say what is wrong with it. `NAMES` was
written before the emulator was asked.
"""

_RACES = ("read-after-write", "write-after-read", "write-after-write")
_STOPS = ("Deadlock", "BarrierDivergence")
_TENSOR_MEMORY = (
    *("unfinished-product", "unordered-columns", "uninitialised-column", "missing-tcgen05-fence"),
    *("missing-tcgen05-wait", "unfinished-tensor-load", "two-writers", "early-dealloc", "leaked-columns"),
    "uncommitted-product",
)  # fmt: skip

NAMES = {
    "barrier": (*_RACES, *_STOPS, "uninitialised-read", "unmade-barrier", "unfinished-read"),
    "warp": (*_RACES, "membermask", "undefined-shuffle", "unfinished-read"),
    "copies": (*_RACES, *_STOPS, "unfinished-copy"),
    "ring": (*_RACES, *_STOPS, "unfinished-read", "unfinished-copy", "surplus-arrival"),
    "mbarrier": (
        *(*_STOPS, "unfinished-copy", "unfinished-read", "unmade-barrier", "remade-barrier"),
        *("overwritten-barrier", "surplus-arrival", "unchecked-wait", "unfinished-product"),
    ),
    "proxy": ("missing-proxy-fence", "missing-init-fence"),
    "wgmma": (
        *("unfinished-wgmma", "missing-wgmma-fence", "uncommitted-wgmma", "overwritten-fragment"),
        "unfinished-read",
    ),
    "tcgen05": (*_STOPS, *_TENSOR_MEMORY, "unfinished-read"),
    "cluster": (
        *(*_STOPS, "unstarted-block", "exited-block", "unmade-barrier", "surplus-arrival"),
        "OutOfBounds",
    ),
    "multicast": (*_STOPS, "unfinished-copy", "unfinished-read", "OutOfBounds", "ExecutionError"),
    "epilogue": (
        *(*_RACES, "unfinished-read", "unfinished-copy", "missing-proxy-fence", "exit-before-copy"),
        "unfinished-store",
    ),
    "atomics": ("global-race", "not-set-back", *_STOPS),
    "bounds": ("OutOfBounds", "Misaligned", "global-race"),
    "uninitialised": ("uninitialised-read", "uninitialised-register", "uninitialised-column"),
    "tensor map": ("wrong-swizzle", "Misaligned", "OutOfBounds", "ExecutionError", "wrong"),
    "numbers": ("wrong",),
}  # fmt: skip

# Added after the first look, since their words name the cause: an error at an mbarrier ("1 more arrivals at the mbarrier ... wait
# for a phase before"), a cluster's wait without an arrival, a wgmma's reading before a write, a count of a named barrier,
# columns of tensor memory that were not allocated so, and two kinds of hazard that there were not then.
LATER = {
    "mbarrier": ("ExecutionError",),
    "ring": ("ExecutionError",),
    "cluster": ("ExecutionError",),
    "wgmma": ("write-after-read",),
    "barrier": ("shared-barrier",),
    "atomics": ("incoherent-read",),
    "tcgen05": ("foreign-lanes", "ExecutionError"),
}

# The same of a report of compute-sanitizer: the beginning of its headline, and the kinds that it names.
_ORDER = (
    "barrier",
    "warp",
    "copies",
    "ring",
    "mbarrier",
    "epilogue",
    "wgmma",
    "cluster",
    "multicast",
)
REPORTS = (
    (r"(Error|Warning): Race|Error: Potential", (*_ORDER, "proxy")),
    (r"Deadlock", ("mbarrier", "ring", "copies", "cluster", "multicast", "barrier")),
    (r"Potential invalid", ("cluster", "multicast")),
    (r"Barrier error|Warpgroup MMA", ("barrier", "warp", "mbarrier", "wgmma", "cluster", "copies")),
    (r"Invalid|Misaligned", ("bounds", "tensor map", "cluster", "multicast")),
    (r"Uninitialized", ("uninitialised", "barrier", "copies", "mbarrier")),
)  # fmt: skip
