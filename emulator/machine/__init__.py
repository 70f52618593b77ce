"""The machine that runs a decoded program: warps, register values, memory, barriers, special registers."""
