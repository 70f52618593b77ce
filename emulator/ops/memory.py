"""Loads, stores, atomics, and moves: PTX ISA 9.7.9 (data movement) and 9.7.13 (atom, red)."""

from __future__ import annotations

import numpy as np

from emulator.machine.binder import PARAM_ADDRESS
from emulator.machine.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from emulator.machine.values import SIGNED, UNSIGNED, Affine, Pattern, add, lift, raw
from emulator.numbers import floats
from emulator.text.program import SINK, WIDTHS, Address, Imm, Reg, Symbol, Vector

_SPACES = ("global", "shared", "local", "const", "param")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_POLLING = {"volatile", "relaxed", "acquire", "mmio"}  # what others may be changing under us

_STRONG = {*_POLLING, "release"}
_ELSEWHERE = {"async", "bulk"}  # st.async, red.async, st.bulk: not plain memory instructions


def dtype_of(kind: str) -> np.dtype:
    """The NumPy type that holds one element of a PTX memory type."""
    width = WIDTHS[kind]
    if kind in ("f16", "f32", "f64"):
        return np.dtype(f"f{width}")
    if width not in UNSIGNED:
        raise ValueError(kind)
    return np.dtype(SIGNED[width] if kind[0] == "s" and kind[1:].isdigit() else UNSIGNED[width])


def space_of(ins) -> str:
    """The state space an instruction names, or "generic"."""
    for part in ins.parts[1:]:
        root = part.split("::")[0]
        if root in _SPACES:
            return root
    return "generic"


def resolve(m, space: str, address, mask) -> list:
    """[(memory, address in it, lanes, name)]: the memories that an address of this space points into."""
    if space in ("global", "const", "param"):
        return [(m.globals, address, mask, "global" if space == "global" else "const")]
    if space == "shared":
        return [(m.shared, address, mask, "shared")]
    if space == "local":
        return [(m.local, address, mask, "local")]
    if type(address) is int:
        lo = hi = address
    else:
        lo, hi = address.lo, address.hi
        if hi >= SHARED_WINDOW:
            address.pattern.tighten()
            lo, hi = address.lo, address.hi
    if hi < SHARED_WINDOW:
        return [(m.globals, address, mask, "global")]
    for window, memory, name in (
        (SHARED_WINDOW, m.shared, "shared"),
        (LOCAL_WINDOW, m.local, "local"),
    ):
        if lo >= window - WINDOW_BYTES and hi < window + WINDOW_BYTES:
            return [(memory, add(address, -window & (1 << 64) - 1, 8), mask, name)]
    lanes, active, found = m.addresses(address), m.lanes_of(mask), []
    near_shared = (lanes >= SHARED_WINDOW - WINDOW_BYTES) & (lanes < SHARED_WINDOW + WINDOW_BYTES)
    near_local = (lanes >= LOCAL_WINDOW - WINDOW_BYTES) & (lanes < LOCAL_WINDOW + WINDOW_BYTES)
    for where, memory, window, name in (
        (near_shared, m.shared, SHARED_WINDOW, "shared"),
        (near_local, m.local, LOCAL_WINDOW, "local"),
        (~near_shared & ~near_local, m.globals, 0, "global"),
    ):
        here = active & where
        if here.any():
            pattern = Pattern(np.where(here, lanes - window, int(lanes[here][0]) - window), 0, 0)
            pattern.lo, pattern.hi = int(pattern.array.min()), int(pattern.array.max())
            found.append((memory, Affine(pattern), here, name))
    return found


def fetch(m, memory, address, mask, dtype: np.dtype, count: int, ins) -> list[np.ndarray]:
    """`count` consecutive elements a lane; rubbish in inactive lanes."""
    places = memory.places(m, address, mask, dtype.itemsize, dtype.itemsize * count, ins)
    (place, *others) = places
    view = place.buffer.view(dtype)
    found = [view[place.start + i :].take(place.index) for i in range(count)]
    for place in others:
        view = place.buffer.view(dtype)
        for i in range(count):
            found[i] = np.where(place.mask, view[place.start + i :].take(place.index), found[i])
    return found


def deliver(m, memory, address, mask, dtype: np.dtype, values: list[np.ndarray], ins) -> None:
    """Writes consecutive elements; where lanes collide, the last one wins."""
    for place in memory.places(m, address, mask, dtype.itemsize, dtype.itemsize * len(values), ins):
        view = place.buffer.view(dtype)
        for i, value in enumerate(values):
            target = view[place.start + i :]
            if place.mask is None:
                shape = np.broadcast_shapes(place.index.shape, value.shape)
                target[np.broadcast_to(place.index, shape)] = value
            else:
                shape = place.mask.shape
                picked = np.broadcast_to(place.index, shape)[place.mask]
                target[picked] = np.broadcast_to(value, shape)[place.mask]


def count(m, ins, name: str, address, mask, width: int, kind: str) -> None:
    if name == "global":
        m.count_global(ins, address, mask, width, kind)
    elif name == "shared":
        m.count_shared(ins, address, mask, width, kind)
        if m.sanitizer is not None:
            strong = kind == "atomic" or bool(_STRONG & set(ins.parts))
            if kind != "store":
                m.sanitizer.read(address, mask, width, ins, strong)
            if kind != "load":
                m.sanitizer.write(address, mask, width, ins, strong)


def _elements(ins, bind) -> tuple[str, np.dtype, int]:
    kind = ins.parts[-1]
    if kind not in WIDTHS or kind == "b128" or _ELSEWHERE & set(ins.parts):
        raise bind.unsupported()
    lanes = next((_VECTORS[part] for part in ins.parts if part in _VECTORS), 1)
    return kind, dtype_of(kind), lanes


def _items(operand) -> tuple:
    return operand.items if isinstance(operand, Vector) else (operand,)


def ld(ins, bind):
    kind, dtype, lanes = _elements(ins, bind)
    destinations = _items(ins.operands[0])
    if len(destinations) != lanes:
        raise bind.error(f"{lanes} destinations expected")
    space = space_of(ins)
    operand: Address = ins.operands[1]
    puts = [_extending(bind, destination, dtype) for destination in destinations]
    if space == "param" and isinstance(operand.base, Symbol):
        home, at = bind.symbol(operand.base)
        if home == "param":
            return _load_parameter(puts, at + operand.offset, dtype.itemsize, kind)
        space = home
    get, width = bind.address(operand, space), dtype.itemsize * lanes
    polling = bool(_POLLING & set(ins.parts))

    def step(m, mask):
        address = get(m)
        if polling:
            m.spin(mask)
        targets = resolve(m, space, address, mask)
        for memory, where, here, name in targets:
            found = fetch(m, memory, where, here, dtype, lanes, ins)
            count(m, ins, name, where, here, width, "load")
            if len(targets) > 1:
                keep, m.keep = m.keep, -1
            for put, value in zip(puts, found, strict=True):
                put(m, value, here)
            if len(targets) > 1:
                m.keep = keep

    return step


def _extending(bind, destination, dtype: np.dtype):
    """A setter that sign- or zero-extends what was loaded to the register's width."""
    put = bind.put(destination)
    if destination == SINK:
        return put
    held = bind.width(destination)
    if held == dtype.itemsize:
        return put
    if held < dtype.itemsize:
        raise bind.error("the register is narrower than the value")
    wide = np.dtype(SIGNED[held] if dtype.kind == "i" else UNSIGNED[held])
    if dtype.kind == "f":
        dtype = np.dtype(UNSIGNED[dtype.itemsize])
        return lambda m, value, mask: put(m, value.view(dtype).astype(wide), mask)
    return lambda m, value, mask: put(m, value.astype(wide), mask)


def _load_parameter(puts, at: int, width: int, kind: str):
    is_signed = kind[0] == "s"

    def step(m, mask):
        for i, put in enumerate(puts):
            data = m.params[at + i * width : at + (i + 1) * width]
            value = np.frombuffer(data, SIGNED[width] if is_signed else UNSIGNED[width]).reshape(
                1, 1
            )
            put(m, value, mask)

    return step


def st(ins, bind):
    _, dtype, lanes = _elements(ins, bind)
    operand, sources = ins.operands[0], _items(ins.operands[1])
    if len(sources) != lanes:
        raise bind.error(f"{lanes} sources expected")
    space = space_of(ins)
    if space == "param":
        space, _ = bind.symbol(operand.base)
    if space == "const":
        raise bind.error("constant memory cannot be written")
    get, gets = bind.address(operand, space), [bind.array(source, dtype) for source in sources]
    width = dtype.itemsize * lanes

    def step(m, mask):
        values = [get_value(m) for get_value in gets]
        for memory, where, here, name in resolve(m, space, get(m), mask):
            deliver(m, memory, where, here, dtype, values, ins)
            count(m, ins, name, where, here, width, "store")
        m.changes += 1

    return step


# --- Atomics ----------------------------------------------------------------------------------------

_ACCUMULATE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _operation(ins, bind, kind: str):
    """(new value of (old, b, c), the ufunc that does the same, or None)."""
    op = next(
        (
            p
            for p in ins.parts[1:]
            if p in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
        ),
        "",
    )
    if kind in ("f16x2", "bf16x2", "bf16", "f16"):
        form = kind.removesuffix("x2")
        if op not in ("add", "min", "max"):
            raise bind.unsupported()
        function = {"add": floats.add, "min": floats.minimum, "max": floats.maximum}[op]
        halves = np.float16 if form == "f16" else np.uint16

        def half(old, b, c):
            return function(old.view(halves), b.view(halves), form).view(old.dtype)

        return half, None
    table = {
        "add": (lambda old, b, c: old + b, np.add),
        "min": (lambda old, b, c: np.minimum(old, b), np.minimum),
        "max": (lambda old, b, c: np.maximum(old, b), np.maximum),
        "exch": (lambda old, b, c: b, None),
        "cas": (lambda old, b, c: np.where(old == b, c, old), None),
        "inc": (
            lambda old, b, c: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
            None,
        ),
        "dec": (
            lambda old, b, c: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
            None,
        ),
    }
    if op in _ACCUMULATE:
        ufunc = _ACCUMULATE[op]
        return (lambda old, b, c: ufunc(old, b)), ufunc
    if op not in table:
        raise bind.unsupported()
    return table[op]


def atom(ins, bind):
    kind = ins.parts[-1]
    if kind not in WIDTHS or kind == "b128" or _ELSEWHERE & set(ins.parts):
        raise bind.unsupported()
    if kind in ("f16x2", "bf16x2"):
        dtype = np.dtype(np.uint32)
    elif kind in ("f16", "bf16"):
        dtype = np.dtype(np.uint16)
    else:
        dtype = dtype_of(kind)
    operands = list(ins.operands)
    returns = ins.parts[0] == "atom"
    destination = operands.pop(0) if returns else SINK
    space, lanes = space_of(ins), len(_items(operands[1]))
    destinations = _items(destination) if lanes > 1 and destination != SINK else (destination,) * 1
    puts = [bind.put(d) for d in destinations]
    get = bind.address(operands[0], space)
    b_gets = [bind.array(item, dtype) for item in _items(operands[1])]
    c_get = bind.array(operands[2], dtype) if "cas" in ins else None
    update, ufunc = _operation(ins, bind, kind)
    returns = returns and any(d != SINK for d in destinations)
    width = dtype.itemsize * lanes

    def step(m, mask):
        m.spin(mask)
        bs = [np.broadcast_to(b(m), (m.B, m.T)) for b in b_gets]
        c = np.broadcast_to(c_get(m), (m.B, m.T)) if c_get else None
        olds = [np.zeros((m.B, m.T), dtype) for _ in bs]
        for memory, where, here, name in resolve(m, space, get(m), mask):
            for place in memory.places(m, where, here, dtype.itemsize, width, ins):
                active = m.lanes_of(place.mask)
                index = np.broadcast_to(place.index, active.shape)[active]
                view = place.buffer.view(dtype)
                for i, b in enumerate(bs):
                    target = view[place.start + i :]
                    picked = b[active], c[active] if c is not None else None
                    old = _in_turn(target, index, *picked, update, ufunc, returns, m)
                    if returns:
                        olds[i][active] = old
            count(m, ins, name, where, here, width, "atomic")
        if returns:
            for put, old in zip(puts, olds, strict=True):
                put(m, old, mask)

    return step


def _in_turn(target, index, b, c, update, ufunc, returns: bool, m):
    """Applies `update` lane after lane, in lane order, and returns what each lane found there."""
    with np.errstate(all="ignore"):
        if ufunc is not None and not returns:
            ufunc.at(target, index, b)
            m.changes += 1
            return None
        order = np.argsort(index, kind="stable")
        where = index[order]
        first = np.ones(len(where), bool)
        first[1:] = where[1:] != where[:-1]
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, len(where)))
        old = np.empty(len(index), target.dtype)
        changed = False
        if ufunc is not None and lengths.max() > 8:
            for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
                lanes = order[start : start + length]
                chain = np.empty(length + 1, target.dtype)
                chain[0], chain[1:] = target[where[start]], b[lanes]
                chain = ufunc.accumulate(chain)
                old[lanes] = chain[:-1]
                changed |= bool(chain[-1] != chain[0])
                target[where[start]] = chain[-1]
        else:
            for turn in range(int(lengths.max())):
                lanes = order[starts[lengths > turn] + turn]
                at = index[lanes]
                before = target[at]
                after = update(before, b[lanes], c[lanes] if c is not None else None)
                old[lanes] = before
                changed |= bool(
                    (
                        after.view(UNSIGNED[after.itemsize])
                        != before.view(UNSIGNED[before.itemsize])
                    ).any()
                )
                target[at] = after
        if changed:
            m.changes += 1
        return old


# --- Moves ------------------------------------------------------------------------------------------


def mov(ins, bind):
    kind = ins.parts[-1]
    destination, source = ins.operands
    if kind == "b128":
        raise bind.unsupported()
    if isinstance(destination, Vector):
        return _unpack(bind, destination.items, source, WIDTHS[kind])
    if isinstance(source, Vector):
        return _pack(bind, destination, source.items, WIDTHS[kind])
    if kind == "pred":
        return bind.pure(destination, lambda value: value, bind.predicate(source))
    width = WIDTHS[kind]
    if kind[0] == "f" and isinstance(source, Imm):
        constant = bind.constant(source, width, True)
        return bind.pure(destination, lambda: constant)
    if isinstance(source, Reg) and bind.width(source) == bind.width(destination):
        return bind.pure(destination, lambda value: value, bind.value(source, width))
    return bind.pure(destination, lambda value: value, bind.integer(source, f"u{8 * width}"))


def _pack(bind, destination, items, width: int):
    part = width // len(items)
    if part not in UNSIGNED:
        raise bind.unsupported()
    dtype = np.dtype(UNSIGNED[part])
    gets = [bind.value(item, part) for item in items]

    def pack(*values):
        if all(type(value) is int for value in values):
            return sum(
                (value & ((1 << 8 * part) - 1)) << (8 * part * i) for i, value in enumerate(values)
            )
        arrays = [
            raw(v if type(v) is not np.ndarray or v.itemsize == part else lift(v, 8), dtype)
            for v in values
        ]
        out = np.empty((*np.broadcast_shapes(*(a.shape for a in arrays)), len(arrays)), dtype)
        for i, array in enumerate(arrays):
            out[..., i] = array
        return out.view(UNSIGNED[width])[..., 0]

    return bind.pure(destination, pack, *gets)


def _unpack(bind, items, source, width: int):
    part = width // len(items)
    if part not in UNSIGNED:
        raise bind.unsupported()
    get, puts = bind.value(source, width), [bind.put(item) for item in items]
    whole = np.dtype(UNSIGNED[width])

    def step(m, mask):
        value = get(m)
        if type(value) is int:
            for i, put in enumerate(puts):
                put(m, value >> (8 * part * i) & ((1 << 8 * part) - 1), mask)
            return
        array = np.ascontiguousarray(raw(value, whole))
        parts = array.view(UNSIGNED[part]).reshape(*array.shape, len(puts))
        for i, put in enumerate(puts):
            put(m, np.ascontiguousarray(parts[..., i]), mask)

    return step


def cvta(ins, bind):
    space = space_of(ins)
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)
    if isinstance(ins.operands[1], Symbol):
        home, at = bind.symbol(ins.operands[1])
        at += PARAM_ADDRESS if home == "param" else window
        return bind.pure(ins.operands[0], lambda: at)
    if "to" in ins.parts:
        window = -window
    bits = window & (1 << 64) - 1
    return bind.pure(
        ins.operands[0], lambda value: add(value, bits, 8), bind.integer(ins.operands[1], "u64")
    )


def isspacep(ins, bind):
    space = space_of(ins)
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space)

    def inside(value):
        if type(value) is int:
            return (
                value < SHARED_WINDOW if window is None else window <= value < window + WINDOW_BYTES
            )
        lanes = value.pattern.array + value.offset
        return (
            lanes < SHARED_WINDOW
            if window is None
            else (lanes >= window) & (lanes < window + WINDOW_BYTES)
        )

    return bind.pure(ins.operands[0], inside, bind.integer(ins.operands[1], "u64"))


def _nothing(ins, bind):
    return lambda m, mask: None


def createpolicy(ins, bind):
    return bind.pure(ins.operands[0], lambda: 0)


OPCODES = {
    "ld": ld,
    "ldu": ld,
    "st": st,
    "atom": atom,
    "red": atom,
    "mov": mov,
    "cvta": cvta,
    "isspacep": isspacep,
    "createpolicy": createpolicy,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "discard", "applypriority", "membar", "fence"), _nothing
    ),
}
