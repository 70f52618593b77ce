"""Calls: parameters in registers, calls of addresses, functions that call themselves."""

import numpy as np
import pytest
from cuda_source import compile_ptx
from fragments_of_ptx import run

import emulator

LANE = np.arange(64)


# --- Parameters in registers ----------------------------------------------------------------------


def test_parameters_in_registers_are_passed_by_value():
    header = """.func (.reg .b32 out, .reg .pred odd) f(.reg .b32 a, .reg .b64 b, .reg .f32 c)
    { .reg .b32 t; add.u32 a, a, 1; cvt.u32.u64 t, b; add.u32 out, a, t; and.b32 t, a, 1; setp.eq.u32 odd, t, 1;
      cvt.rzi.u32.f32 t, c; mad.lo.u32 out, t, 1000, out; add.u64 b, b, 5; ret; }"""
    code = """{ .reg .b64 w; .reg .pred p; .reg .f32 x; cvt.u64.u32 w, %n; mov.f32 x, 0f40400000;
    call (%d, p), f, (%n, w, x); @p add.u32 %d, %d, 100000;
    call (%e, p), f, (7, w, 0f3F800000); cvt.u32.u64 %g, w; }"""
    d, e, g = run(code, {}, {"%d": "u32", "%e": "u32", "%g": "u32"}, threads=64, header=header)
    assert (d == 2 * LANE + 1 + 3000 + 100000 * ((LANE + 1) % 2)).all()
    assert (e == 8 + LANE + 1000).all() and (g == LANE).all()


def test_registers_meet_parameters_in_memory():
    header = """.func (.param .b32 out) f(.param .b32 a, .reg .b32 b)
    { .reg .b32 t; ld.param.u32 t, [a]; sub.u32 t, t, b; st.param.u32 [out], t; ret; }"""
    code = """{ .param .b32 q, r; st.param.b32 [q], %n; call (r), f, (q, 3); ld.param.u32 %e, [r];
    call (%d), f, (%n, %e); call (%e), f, (100, q); }"""
    d, e = run(code, {}, {"%d": "u32", "%e": "u32"}, threads=64, header=header)
    assert (d == 3).all() and (e == 100 - LANE).all()


def test_a_guarded_call_leaves_other_lanes_alone():
    header = ".func (.reg .b32 out) f(.reg .b32 a) { add.u32 out, a, 9; ret; }"
    code = "{ .reg .pred p; mov.u32 %d, 1; setp.lt.u32 p, %n, 40; @p call (%d), f, (%n); }"
    assert (
        run(code, {}, {"%d": "u32"}, threads=64, header=header) == np.where(LANE < 40, LANE + 9, 1)
    ).all()


# --- Calls of addresses ---------------------------------------------------------------------------

THREE = "".join(
    f""".func (.param .b32 out) {name}(.param .b32 a)
    {{ .reg .b32 t; ld.param.u32 t, [a]; {work} st.param.u32 [out], t; ret; }}\n"""
    for name, work in (
        ("f", "add.u32 t, t, 5;"),
        ("g", "mul.lo.u32 t, t, 3;"),
        ("h", "mov.u32 t, 77;"),
    )
)
PICK = """{ .reg .b64 at; .reg .pred p; .reg .b32 i; rem.u32 i, %n, 3; mov.u64 at, f; setp.eq.u32 p, i, 1; @p mov.u64 at, g;
    setp.eq.u32 p, i, 2; @p mov.u64 at, h; CHANGE .param .b32 q, r; st.param.b32 [q], %n; LIST
    call (r), at, (q), list; ld.param.u32 %d, [r]; activemask.b32 %e; }"""
WANT = np.choose(LANE % 3, [LANE + 5, LANE * 3, np.full(64, 77)])
LISTS = {
    "calltargets": "list: .calltargets f, g, h;",
    "callprototype": "list: .callprototype (.param .b32 _) _ (.param .b32 _);",
}


@pytest.mark.parametrize("kind", LISTS)
def test_lanes_call_what_their_pointers_say_and_meet_again(kind):
    code = PICK.replace("LIST", LISTS[kind]).replace("CHANGE", "")
    d, e = run(code, {}, {"%d": "u32", "%e": "u32"}, threads=64, header=THREE)
    assert (d == WANT).all() and (e == 0xFFFFFFFF).all()


@pytest.mark.parametrize("table", ["list: .callprototype (.param .b32 _) _ (.param .b32 _);", ""])
def test_pointers_from_a_table_in_memory(table):
    header = THREE + ".global .align 8 .u64 jumps[3] = {h, f, g};\n"
    code = """{ .reg .b64 at; .reg .b32 i; rem.u32 i, %n, 3; mov.u64 at, jumps; mad.wide.u32 at, i, 8, at;
    ld.global.u64 at, [at]; .param .b32 q, r; st.param.b32 [q], %n; LIST call (r), at, (q), NAME; ld.param.u32 %d, [r]; }"""
    code = code.replace("LIST", table).replace("NAME", "list" if table else "jumps")
    d = run(code, {}, {"%d": "u32"}, threads=64, header=header)
    assert (d == np.choose(LANE % 3, [np.full(64, 77), LANE + 5, LANE * 3])).all()


@pytest.mark.parametrize("change", ["mov.u64 at, 0;", "add.u64 at, at, 4;"])
def test_a_stray_pointer_is_an_error(change):
    code = PICK.replace("LIST", LISTS["calltargets"]).replace("CHANGE", change)
    with pytest.raises(emulator.ExecutionError, match="of no function which this call may go to"):
        run(code, {}, {"%d": "u32", "%e": "u32"}, threads=64, header=THREE)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("call (r), at, (q);", "its targets or its prototype"),
        ("call (r), at, (q), none;", "named none"),
    ],
)
def test_an_indirect_call_without_a_list_is_refused(call, why):
    code = "{ .reg .b64 at; mov.u64 at, f; .param .b32 q, r; st.param.b32 [q], %n; " + call + " }"
    with pytest.raises(emulator.PtxError, match=why):
        run(code, {}, {"%d": "u32"}, threads=64, header=THREE)


# --- Functions that call themselves ---------------------------------------------------------------

FIB = """.func (.param .b32 out) fib(.param .b32 n)
{ .reg .b32 n0, x, y; .reg .pred p; ld.param.u32 n0, [n]; mov.u32 x, n0; setp.lt.u32 p, n0, 2; @p bra DONE;
  { .param .b32 q, r; sub.u32 x, n0, 1; st.param.b32 [q], x; call (r), fib, (q); ld.param.u32 x, [r]; }
  { .param .b32 q, r; sub.u32 y, n0, 2; st.param.b32 [q], y; call (r), fib, (q); ld.param.u32 y, [r]; }
  add.u32 x, x, y; DONE: st.param.u32 [out], x; ret; }
"""


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def test_recursion_of_lanes_of_unlike_depth():
    code = """{ .reg .b32 m, a; and.b32 m, %n, 7; mul.lo.u32 a, %n, 11; .param .b32 q, r; st.param.b32 [q], m;
    call (r), fib, (q); ld.param.u32 %d, [r]; add.u32 %e, a, %d; activemask.b32 %g; }"""
    hazards = []
    d, e, g = run(
        code, {}, {"%d": "u32", "%e": "u32", "%g": "u32"}, threads=64, header=FIB, hazards=hazards
    )
    want = np.array([fib(n % 8) for n in range(64)])
    assert (d == want).all() and (e == 11 * LANE + want).all() and not hazards
    assert (g == 0xFFFFFFFF).all()


def test_recursion_with_parameters_in_registers():
    header = """.func (.reg .b32 out) power(.reg .b32 base, .reg .b32 n)
    { .reg .b32 m; .reg .pred p; mov.u32 out, 1; setp.eq.u32 p, n, 0; @p ret; sub.u32 m, n, 1;
      call (m), power, (base, m); mul.lo.u32 out, m, base; ret; }"""
    code = "{ .reg .b32 k; and.b32 k, %n, 3; add.u32 %e, %n, 2; call (%d), power, (%e, k); }"
    d, _ = run(code, {}, {"%d": "u32", "%e": "u32"}, threads=64, header=header)
    assert (d == (LANE + 2) ** (LANE & 3)).all()


def test_functions_that_call_each_other():
    header = """.func (.reg .b32 out) odd(.reg .b32 n);
    .func (.reg .b32 out) even(.reg .b32 n)
    { .reg .pred p; mov.u32 out, 1; setp.eq.u32 p, n, 0; @p ret; sub.u32 n, n, 1; call (out), odd, (n); ret; }
    .func (.reg .b32 out) odd(.reg .b32 n)
    { .reg .pred p; mov.u32 out, 0; setp.eq.u32 p, n, 0; @p ret; sub.u32 n, n, 1; call (out), even, (n); ret; }"""
    assert (
        run("call (%d), even, (%n);", {}, {"%d": "u32"}, threads=64, header=header) == 1 - LANE % 2
    ).all()


def test_arguments_that_change_places():
    header = """.func (.reg .b32 out) gcd(.reg .b32 a, .reg .b32 b)
    { .reg .pred p; mov.u32 out, a; setp.eq.u32 p, b, 0; @p ret; rem.u32 a, a, b; call (out), gcd, (b, a); ret; }"""
    d = run("add.u32 %e, %n, 60; call (%d), gcd, (%e, 36);", {}, {"%d": "u32", "%e": "u32"}, threads=64,
            header=header)[0]  # fmt: skip
    assert (d == np.gcd(LANE + 60, 36)).all()


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_a_barrier_on_the_way(barrier):
    header = f""".func (.reg .b32 out) sum(.reg .b32 n) {{ .reg .b32 m; .reg .pred p; mov.u32 out, 0; {barrier}
    setp.eq.u32 p, n, 0; @p ret; sub.u32 m, n, 1; call (m), sum, (m); add.u32 out, m, n; ret; }}"""
    assert (run("call (%d), sum, (20);", {}, {"%d": "u32"}, threads=64, header=header) == 210).all()


def test_endless_recursion_is_an_error():
    header = ".func f(.reg .b32 a) { call f, (a); ret; }\n"
    with pytest.raises(emulator.ExecutionError, match="4096 calls deep"):
        run("call f, (%n);", {}, {"%d": "u32"}, threads=32, header=header)
    header = """.func f(.param .b32 a) { .param .b32 b; .reg .b32 t; ld.param.u32 t, [a]; st.param.b32 [b], t;
    call f, (b); ret; }\n"""
    code = "{ .param .b32 q; st.param.b32 [q], %n; call f, (q); }"
    with pytest.raises(emulator.ExecutionError, match="stack of a thread is full after"):
        run(code, {}, {"%d": "u32"}, threads=32, header=header)


def test_an_unset_variable_inside_is_found():
    header = """.func (.reg .b32 out) f(.reg .b32 n) { .reg .b32 m, u; .reg .pred p; mov.u32 out, u; setp.eq.u32 p, n, 0; @p ret;
    sub.u32 m, n, 1; call (out), f, (m); ret; }"""
    hazards = []
    run("call (%d), f, (3);", {}, {"%d": "u32"}, threads=32, header=header, hazards=hazards)
    assert set(hazards) == {"uninitialised-register"}


def test_rows_of_a_recursive_function():
    module = emulator.Module(
        f""".version 9.0\n.target sm_90\n.address_size 64\n{FIB}.visible .entry k() {{
    {{ .param .b32 q, r; st.param.b32 [q], 5; call (r), fib, (q); }} ret; }}"""
    )
    trace = module.launch("k", 1, 32, [])
    calls = sum(fib_calls(n) for n in (5,))
    assert sum(row.warps for row in trace.rows("setp")) == calls
    assert all(row.ptx_line > 0 for row in trace.instructions)


def fib_calls(n):
    return 1 if n < 2 else 1 + fib_calls(n - 1) + fib_calls(n - 2)


# --- As nvcc writes them --------------------------------------------------------------------------

CUDA = r"""
struct Shape { __device__ virtual int area(int k) const = 0; };
struct Square : Shape {
    int a;
    __device__ Square(int a) : a(a) {}
    __device__ int area(int k) const override { return a * a + k; }
};
struct Strip : Shape {
    int a, b;
    __device__ Strip(int a, int b) : a(a), b(b) {}
    __device__ int area(int k) const override { return a * b - k; }
};

__device__ __noinline__ int measured(const Shape *shape, int k) { return shape->area(k); }

extern "C" __global__ void virtual_calls(int *out) {
    int t = threadIdx.x;
    Square square(t); Strip strip(t, 100);
    out[t] = measured(t % 3 ? (const Shape *)&square : (const Shape *)&strip, t);
}

__device__ __noinline__ void sort(int *x, int low, int high) {
    if (low >= high) return;
    int pivot = x[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (x[i] < pivot) i++;
        while (x[j] > pivot) j--;
        if (i <= j) { int t = x[i]; x[i] = x[j]; x[j] = t; i++; j--; }
    }
    sort(x, low, j);
    sort(x, i, high);
}

extern "C" __global__ void sorted(int *data, int n) { sort(data + threadIdx.x * n, 0, n - 1); }

__device__ __noinline__ int paths(int x, int y, int *steps) {
    int here[2] = {x, y};                       // a frame of its own in each call
    *steps += 1;
    if (x == 0 || y == 0) return 1;
    int below = 0;
    int a = paths(x - 1, y, &below), b = paths(x, y - 1, &below);
    *steps += below + here[0] - x + here[1] - y;
    return a + b;
}

extern "C" __global__ void counted(int *out, int *steps) {
    int t = threadIdx.x, made = 0;
    out[t] = paths(t % 4, t % 5, &made);
    steps[t] = made;
}

typedef float (*Function)(float, float);
__device__ __noinline__ float plus(float a, float b) { return a + b; }
__device__ __noinline__ float minus(float a, float b) { return a - b; }
__device__ Function table[2] = {plus, minus};

struct Pair { long long a; short b; char c; };

__device__ __noinline__ int helper(const int *x, int n) {    // stands inside of a function that calls itself
    int copy[4];
    for (int i = 0; i < 4; i++) copy[i] = x[(i + n) & 3];
    return copy[n & 3] + 10 * copy[(n + 1) & 3];
}

__device__ __noinline__ Pair folded(Pair p, int n) {
    __shared__ int calls[64];
    int own[4] = {n, n + 1, n + 2, n + 3};
    if (n == 0) { calls[threadIdx.x] = 0; return p; }
    switch (n % 5) {                                         // a table of branches
        case 0: p.b += 1; break;
        case 1: p.b += 20; break;
        case 2: p.b -= 3; break;
        case 3: p.b ^= 5; break;
        default: p.b *= 2;
    }
    p.c ^= n;
    Pair below = folded(p, n - 1);
    below.a += helper(own, n) * (long long)p.b;
    calls[threadIdx.x] += 1;
    if (n == 3 && threadIdx.x == 5) printf("%d of %lld\n", n, below.a);
    below.c += calls[threadIdx.x] == n;
    return below;
}

extern "C" __global__ void structures(long long *out) {
    int t = threadIdx.x;
    Pair p = folded(Pair{t, (short)(3 * t), (char)t}, t % 7);
    out[3 * t] = p.a; out[3 * t + 1] = p.b; out[3 * t + 2] = p.c;
}

typedef int (*Step)(int, int);
extern __device__ Step steps_of[2];
__device__ __noinline__ int half(int n, int k) { return n < 2 ? k : steps_of[(n / 2) % 2](n / 2, k + 1); }
__device__ __noinline__ int triple(int n, int k) { return n < 2 ? k : steps_of[(3 * n + 1) % 2](3 * n + 1, k + 1); }
__device__ Step steps_of[2] = {half, triple};

extern "C" __global__ void by_pointer(int *out) { out[threadIdx.x] = steps_of[(threadIdx.x + 1) % 2](threadIdx.x + 1, 0); }

extern "C" __global__ void by_table(float *out, const int *which) {
    int t = threadIdx.x;
    out[t] = table[which[t]](t, 10.0f);
}
"""


@pytest.fixture(scope="module")
def cuda():
    return emulator.Module(compile_ptx(CUDA))


def test_virtual_functions(cuda):
    out = np.zeros(64, np.int32)
    trace = cuda.launch("virtual_calls", 1, 64, [out])
    assert (out == np.where(LANE % 3, LANE * LANE + LANE, 100 * LANE - LANE)).all()
    assert not trace.hazards


def test_quicksort(cuda):
    data = np.random.default_rng(1).integers(-1000, 1000, (32, 40)).astype(np.int32)
    want = np.sort(data, axis=1)
    trace = cuda.launch("sorted", 1, 32, [data, np.int32(40)])
    assert (data == want).all() and not trace.hazards


def paths(x, y):
    if x == 0 or y == 0:
        return 1, 1
    (a, s), (b, t) = paths(x - 1, y), paths(x, y - 1)
    return a + b, s + t + 1


def test_pointers_into_the_callers_frames(cuda):
    out, steps = np.zeros((2, 64), np.int32)
    trace = cuda.launch("counted", 1, 64, [out, steps])
    want = np.array([paths(t % 4, t % 5) for t in range(64)])
    assert (out == want[:, 0]).all() and (steps == want[:, 1]).all() and not trace.hazards


def test_a_table_of_functions(cuda):
    out, which = np.zeros(64, np.float32), (LANE % 2).astype(np.int32)
    trace = cuda.launch("by_table", 1, 64, [out, which])
    assert (out == np.where(LANE % 2, LANE - 10, LANE + 10)).all() and not trace.hazards


def folded(p, n, t, printed):
    a, b, c = p
    own = [n, n + 1, n + 2, n + 3]
    if n == 0:
        return p, 0
    b = [b + 1, b + 20, b - 3, b ^ 5, b * 2][n % 5]
    (below, b_out, c_out), calls = folded((a, b, c ^ n), n - 1, t, printed)
    copy = [own[(i + n) & 3] for i in range(4)]
    below += (copy[n & 3] + 10 * copy[(n + 1) & 3]) * b
    if n == 3 and t == 5:
        printed.append(f"{n} of {below}\n")
    return (below, b_out, c_out + (calls + 1 == n)), calls + 1


def test_structures_helpers_switches_and_printf_in_recursion(cuda, capsys):
    out, printed = np.zeros((64, 3), np.int64), []
    trace = cuda.launch("structures", 1, 64, [out])
    want = [folded((t, 3 * t, t), t % 7, t, printed)[0] for t in range(64)]
    assert out.tolist() == [list(p) for p in want]
    assert capsys.readouterr().out == "".join(printed) and not trace.hazards


def collatz(n):
    return 0 if n < 2 else 1 + collatz(3 * n + 1 if n % 2 else n // 2)


def test_recursion_through_pointers(cuda):
    out = np.zeros(26, np.int32)
    trace = cuda.launch("by_pointer", 1, 26, [out])
    assert out.tolist() == [collatz(t + 1) for t in range(26)] and not trace.hazards
