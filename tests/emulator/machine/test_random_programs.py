"""Random straight-line programs, in a loop and across a divergent branch, against Python integers.

The same program runs with operands that the machine keeps symbolic (thread indices, parameters) and
with operands loaded from memory; all three must agree, in every register.
"""

import numpy as np
from fragments_of_ptx import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

THREADS, REGISTERS, ROUNDS = 64, 5, 3
MASK = (1 << 32) - 1


def signed(value):
    return value - (1 << 32) if value >> 31 else value


OPERATIONS = {
    "add.s32 {d}, {a}, {b};": lambda a, b, k: a + b,
    "sub.s32 {d}, {a}, {b};": lambda a, b, k: a - b,
    "add.s32 {d}, {a}, {k};": lambda a, b, k: a + k,
    "mul.lo.s32 {d}, {a}, {b};": lambda a, b, k: a * b,
    "mul.lo.s32 {d}, {a}, {k};": lambda a, b, k: a * k,
    "mad.lo.s32 {d}, {a}, {k}, {b};": lambda a, b, k: a * k + b,
    "and.b32 {d}, {a}, {b};": lambda a, b, k: a & b,
    "and.b32 {d}, {a}, {k};": lambda a, b, k: a & k,
    "or.b32 {d}, {a}, {k};": lambda a, b, k: a | k,
    "xor.b32 {d}, {a}, {b};": lambda a, b, k: a ^ b,
    "xor.b32 {d}, {a}, {k};": lambda a, b, k: a ^ k,
    "not.b32 {d}, {a};": lambda a, b, k: ~a,
    "neg.s32 {d}, {a};": lambda a, b, k: -a,
    "min.s32 {d}, {a}, {b};": lambda a, b, k: min(signed(a), signed(b)),
    "max.u32 {d}, {a}, {k};": lambda a, b, k: max(a, k & MASK),
    "shl.b32 {d}, {a}, {n};": lambda a, b, k: a << (k & 31),
    "shr.u32 {d}, {a}, {n};": lambda a, b, k: a >> (k & 31),
    "shr.s32 {d}, {a}, {n};": lambda a, b, k: signed(a) >> (k & 31),
    "mul.wide.s32 w, {a}, {b}; shr.s64 w, w, 7; cvt.u32.u64 {d}, w;": lambda a, b, k: signed(a) * signed(b) >> 7,
    "cvt.u64.u32 w, {a}; mul.lo.u64 w, w, w; shr.u64 w, w, 20; cvt.u32.u64 {d}, w;": lambda a, b, k: a * a >> 20,
    "cvt.s64.s32 w, {a}; add.s64 w, w, {k}; shr.s64 w, w, 3; cvt.u32.u64 {d}, w;": lambda a, b, k: signed(a) + k >> 3,
    "cvt.s32.s16 {d}, {a};": lambda a, b, k: (a & 0xFFFF ^ 0x8000) - 0x8000,
    "setp.lt.s32 p, {a}, {b}; selp.b32 {d}, {a}, {k}, p;": lambda a, b, k: a if signed(a) < signed(b) else k,
    "setp.gt.u32 p, {a}, {b}; @p add.s32 {d}, {d}, {k};": None,
    "popc.b32 {d}, {a};": lambda a, b, k: a.bit_count(),
    "mul.hi.u32 {d}, {a}, {b};": lambda a, b, k: a * b >> 32,
}  # fmt: skip

constants = st.one_of(
    st.integers(-5, 40),
    st.sampled_from([-(1 << 31), (1 << 31) - 1, 255, 65536, -65536, 0x55555555]),
)
steps = st.tuples(
    st.sampled_from(list(OPERATIONS)), *[st.integers(0, REGISTERS - 1)] * 3, constants
)
programs = st.lists(steps, min_size=1, max_size=10)


def text_of(program):
    lines = []
    for template, d, a, b, k in program:
        lines.append(template.format(d=f"%r{d}", a=f"%r{a}", b=f"%r{b}", k=k, n=k & 31))
    return "\n".join(lines)


def execute(program, registers):
    for template, d, a, b, k in program:
        function = OPERATIONS[template]
        if function is None:
            if registers[a] > registers[b]:
                registers[d] = registers[d] + k & MASK
        else:
            registers[d] = function(registers[a], registers[b], k) & MASK


def expected(body, odd, start):
    out = np.zeros((REGISTERS, THREADS), "u4")
    for thread in range(THREADS):
        registers = [int(values[thread]) for values in start]
        for _ in range(ROUNDS):
            execute(body, registers)
            if thread % 2:
                execute(odd, registers)
        out[:, thread] = registers
    return out


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs, programs, st.lists(constants, min_size=2, max_size=2))
def test_random_programs(body, odd, uniform):
    lane = np.arange(THREADS)
    start = [
        lane,
        lane * 12 + 3 & MASK,
        np.full(THREADS, uniform[0] & MASK),
        np.full(THREADS, uniform[1] & MASK),
        lane ^ 5,
    ]
    start = [values.astype("u4") for values in start]
    outputs = {f"%o{i}": "u32" for i in range(REGISTERS)}
    declare = "{ .reg .pred p, q, odd; .reg .b64 w; .reg .b32 i, %r<5>;\n"
    loop = f"""mov.u32 i, 0; and.b32 %o0, %n, 1; setp.eq.u32 odd, %o0, 1;
        LOOP: {text_of(body)}
        @!odd bra EVEN; {text_of(odd)}
        EVEN: add.u32 i, i, 1; setp.lt.u32 q, i, {ROUNDS}; @q bra LOOP;
        {" ".join(f"mov.u32 %o{i}, %r{i};" for i in range(REGISTERS))} }}"""
    symbolic = f"""mov.u32 %r0, %tid.x; mad.lo.u32 %r1, %r0, 12, 3; mov.u32 %r2, {uniform[0]};
        mov.u32 %r3, {uniform[1]}; xor.b32 %r4, %r0, 5;"""
    loaded = " ".join(f"mov.u32 %r{i}, %a{i};" for i in range(REGISTERS))
    correct = expected(body, odd, start)
    got = run(declare + symbolic + loop, {}, outputs, threads=THREADS)
    assert (np.array(got) == correct).all()
    got = run(declare + loaded + loop, {f"%a{i}": ("u32", v) for i, v in enumerate(start)}, outputs)
    assert (np.array(got) == correct).all()
