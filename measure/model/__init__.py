"""One model of what limits a kernel: work counted from machine code and the emulator, rates measured by loops, on
elapsed clocks.

`counts` counts, `rates` says what a machine does per clock, `bound` divides one by the other, `prediction` adds
latencies, overlap and rounds of blocks, `recorded` and `pairs` hold the recorded times, `check` says where the model
holds and where it fails.
"""
