"""Runs a few PTX instructions over arrays of operands, one thread for each, so that they can be checked."""

import numpy as np

import emulator

TYPES = {
    "b8": "u1", "u8": "u1", "s8": "i1", "b16": "u2", "u16": "u2", "s16": "i2", "f16": "f2",
    "b32": "u4", "u32": "u4", "s32": "i4", "f32": "f4", "f16x2": "u4", "bf16": "u2", "bf16x2": "u4",
    "b64": "u8", "u64": "u8", "s64": "i8", "f64": "f8",
}  # fmt: skip
REGISTER = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}


def run(code, inputs, outputs, threads=None, header="", shared_bytes=0, hazards=None, **options):
    """Executes `code` and returns the output arrays.

    inputs: {register: (PTX type, array or scalar)}; arrays are loaded lane by lane, scalars come as
    parameters, the same in all threads. outputs: {register: PTX type}. Registers are declared.
    hazards: a list that takes the kinds of the hazards found.
    """
    arrays = {name: np.asarray(value, TYPES[kind]) for name, (kind, value) in inputs.items()}
    count = threads or max((a.size for a in arrays.values() if a.ndim), default=32)
    results = {name: np.zeros(count, TYPES[kind]) for name, kind in outputs.items()}
    params, body, args = [], [], []

    def register(kind):
        return REGISTER[np.dtype(TYPES[kind]).itemsize]

    for name, (kind, _) in inputs.items():
        array = arrays[name]
        body.append(f".reg .{register(kind)} {name};")
        size = array.dtype.itemsize
        if array.ndim:
            params.append(f".param .u64 p{len(params)}")
            args.append(np.ascontiguousarray(array))
            body.append(
                f"ld.param.u64 %at, [p{len(params) - 1}]; mad.wide.u32 %at, %n, {size}, %at;"
                f" ld.global.b{8 * size} {name}, [%at];"
            )
        else:
            params.append(f".param .b{8 * size} p{len(params)}")
            args.append(array[()])
            body.append(f"ld.param.b{8 * size} {name}, [p{len(params) - 1}];")
    body.extend(f".reg .{register(kind)} {name};" for name, kind in outputs.items())
    body.append(code)
    for name, kind in outputs.items():
        size = np.dtype(TYPES[kind]).itemsize
        params.append(f".param .u64 p{len(params)}")
        args.append(results[name])
        body.append(
            f"ld.param.u64 %at, [p{len(params) - 1}]; mad.wide.u32 %at, %n, {size}, %at;"
            f" st.global.b{8 * size} [%at], {name};"
        )
    grid, block = (1, count) if count <= 1024 else (-(-count // 256), 256)
    text = f""".version 9.0
.target sm_90
.address_size 64
{header}
.visible .entry test({", ".join(params)})
{{
  .reg .b64 %at; .reg .b32 %n, %nt, %nc; .reg .pred %past;
  mov.u32 %n, %tid.x; mov.u32 %nt, %ntid.x; mov.u32 %nc, %ctaid.x;
  mad.lo.s32 %n, %nc, %nt, %n;
  setp.ge.u32 %past, %n, {count};
  @%past exit;
  {chr(10).join(body)}
  ret;
}}
"""
    module = emulator.Module(text)
    trace = module.launch("test", grid, block, args, shared_bytes=shared_bytes, **options)
    if hazards is not None:
        hazards.extend(hazard.kind for hazard in trace.hazards)
    return tuple(results.values()) if len(results) != 1 else next(iter(results.values()))


def edges(kind, more=0, seed=1):
    """Edge values of an integer type, and `more` random ones."""
    dtype = np.dtype(TYPES[kind])
    info = np.iinfo(dtype)
    bits = 8 * dtype.itemsize
    known = {
        0,
        1,
        2,
        3,
        7,
        31,
        32,
        33,
        info.max,
        info.max - 1,
        info.min,
        info.min + 1,
        info.max // 3,
        1 << bits - 2,
    }
    if info.min < 0:
        known |= {-1, -2, -3, -31, -32, info.min // 3}
    known = sorted(value for value in known if info.min <= value <= info.max)
    random = np.random.default_rng(seed).integers(
        info.min, info.max, more, dtype=dtype, endpoint=True
    )
    return np.concatenate([np.array(known, dtype), random])


def pairs(a, b):
    """All pairs of two arrays' elements: two arrays."""
    x, y = np.meshgrid(a, b, indexing="ij")
    return x.reshape(-1), y.reshape(-1)


def bits_of(kind):
    return 8 * np.dtype(TYPES[kind]).itemsize


def wrap(value, kind):
    """A Python int as the type holds it."""
    bits = bits_of(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> bits - 1 else value


def binary(opcode, kind, reference, a, b, b_kind=None, result=None):
    """Checks d = a op b with arrays, with either operand uniform, with both, and with affine addresses."""
    result, b_kind = result or kind, b_kind or kind
    x, y = pairs(a, b)
    expected = np.array(
        [wrap(reference(int(p), int(q)), result) for p, q in zip(x, y, strict=True)], TYPES[result]
    )
    code = f"{opcode} %d, %a, %b;"
    got = run(code, {"%a": (kind, x), "%b": (b_kind, y)}, {"%d": result})
    bad = np.flatnonzero(got != expected)
    assert not bad.size, [(int(x[i]), int(y[i]), int(got[i]), int(expected[i])) for i in bad[:4]]
    table = expected.reshape(len(a), len(b))
    for at in (0, len(b) // 2, len(b) - 1):
        got = run(code, {"%a": (kind, a), "%b": (b_kind, b[at])}, {"%d": result})
        assert (got == table[:, at]).all(), (opcode, "uniform b", b[at])
    for at in (0, len(a) // 2, len(a) - 1):
        got = run(code, {"%a": (kind, a[at]), "%b": (b_kind, b)}, {"%d": result})
        assert (got == table[at]).all(), (opcode, "uniform a", a[at])
        got = run(code, {"%a": (kind, a[at]), "%b": (b_kind, b[at % len(b)])}, {"%d": result})
        assert (got == table[at, at % len(b)]).all(), (opcode, "both uniform")


def unary(opcode, kind, result, reference):
    """Checks d = op a with an array, and with some of its values uniform."""
    x = edges(kind, 20)
    expected = np.array([wrap(reference(int(v)), result) for v in x], TYPES[result])
    assert (run(f"{opcode} %d, %a;", {"%a": (kind, x)}, {"%d": result}) == expected).all()
    for at in range(0, len(x), 5):
        got = run(f"{opcode} %d, %a;", {"%a": (kind, x[at])}, {"%d": result})
        assert (got == expected[at]).all()
