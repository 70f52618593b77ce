"""Which words may follow an opcode (PTX ISA 9.0), so that a typing mistake is not another instruction.

An opcode has one or more *forms*. A form is a line of groups: `lo|hi|wide sat u32|s32` takes at most
one word of each of the three groups, in any order (ptxas is as free, and compilers use it). A group
with a star may be drawn from several times: the types of `cvt`, the two layouts of `mma`. One with
an exclamation mark may not be left out.
Only what this machine executes is listed, and what its factories refuse with a reason of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache

from emulator.errors import Unsupported
from emulator.text.program import Instruction

_ROUND = "rn|rz|rm|rp"
_INT = "u16|s16|u32|s32|u64|s64"
_WORD = "b16|b32|b64"
_PAIRS = "u16x2|s16x2"
_HALF = "f16|f16x2|bf16|bf16x2"
_FLOAT = f"f32|f32x2|f64|{_HALF}"
_MOVED = f"{_WORD}|{_INT}|f16|bf16|f32|f64"
_HELD = f"b8|u8|s8|b128|{_MOVED}"
_CONVERTED = f"u8|s8|{_INT}|{_FLOAT}|tf32|e4m3x2|e5m2x2"
_SHARED = "shared|shared::cta|shared::cluster"
_SPACE = f"global|local|const|param|param::entry|param::func|{_SHARED}"
_SCOPE = "cta|cluster|gpu|sys"
_L1 = "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"
_L2 = "L2::evict_normal|L2::evict_unchanged|L2::evict_first|L2::evict_last"
_CACHED = f"{_L1} {_L2} L2::cache_hint"
_PREFETCHED = "L2::64B|L2::128B|L2::256B"
_LOGIC = "and|or|xor"
_COMPARED = f"eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan! {_LOGIC} ftz"
_SHAPES = (
    "m8n8k4|m8n8k16|m8n8k32|m8n8k128|m16n8k4|m16n8k8|m16n8k16|m16n8k32|m16n8k64|m16n8k128|m16n8k256|"
    "m16n16k16|m32n8k16|m8n32k16|m16n16k8"
)
_OF_MATRICES = "f16|bf16|tf32|f32|f64|s8|u8|s32"
_ATOMIC = (
    f"relaxed|acquire|release|acq_rel {_SCOPE} global|{_SHARED} noftz L2::cache_hint v2|v4|v8 "
    f"add|min|max|and|or|xor|exch|cas|inc|dec {_MOVED}|b128|f16x2|bf16x2"
)

_TENSOR = "tensor 1d|2d|3d|4d|5d tile"
_TO_SHARED = "shared::cluster|shared::cta global|shared::cta mbarrier::complete_tx::bytes"
_BULK_TYPES = "f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64"
_BULK = (
    f"async bulk {_TO_SHARED} multicast::cluster L2::cache_hint",
    "async bulk shared::cluster! shared::cta! mbarrier::complete_tx::bytes!",
    "async bulk global! shared::cta! bulk_group! L2::cache_hint cp_mask",
    "async bulk prefetch! L2 global L2::cache_hint",
    "async bulk commit_group",
    "async bulk wait_group read",
    f"async bulk {_TENSOR} {_TO_SHARED} multicast::cluster L2::cache_hint",
    f"async bulk {_TENSOR} global! shared::cta! bulk_group! L2::cache_hint",
    f"async bulk prefetch! {_TENSOR} L2 global L2::cache_hint",
    "reduce async bulk shared::cluster! shared::cta! mbarrier::complete_tx::bytes! "
    f"add|min|max|inc|dec|and|or|xor! {_BULK_TYPES}!",
    "reduce async bulk global! shared::cta! bulk_group! L2::cache_hint "
    f"add|min|max|inc|dec|and|or|xor! noftz {_BULK_TYPES}!",
    f"reduce async bulk {_TENSOR} global! shared::cta! add|min|max|inc|dec|and|or|xor! "
    "bulk_group! L2::cache_hint",
)
_WGMMA_SHAPES = "|".join(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32))

FORMS: dict[str, tuple[str, ...]] = {
    # integer arithmetic; floating point where it shares the name
    "add": ("sat s32", "cc u32|s32|u64|s64", f"{_INT}|{_PAIRS}", f"{_ROUND} ftz sat {_FLOAT}"),
    "sub": ("sat s32", "cc u32|s32|u64|s64", f"{_INT}|{_PAIRS}", f"{_ROUND} ftz sat {_FLOAT}"),
    **dict.fromkeys(("addc", "subc"), ("cc u32|s32|u64|s64",)),
    "mul": (f"lo|hi|wide! {_INT}!", f"{_ROUND} ftz sat {_FLOAT}!"),
    "mad": (f"lo|hi|wide! {_INT}!", "hi! sat s32!", "lo|hi! cc! u32|s32|u64|s64!",
            f"{_ROUND}! ftz sat f32|f64!"),
    "madc": ("lo|hi! cc u32|s32|u64|s64!",),
    **dict.fromkeys(("mul24", "mad24"), ("lo|hi! u32|s32!",)),
    "div": (f"{_INT}!", "approx|full! ftz f32!", f"{_ROUND}! ftz f32|f64!"),
    "rem": (_INT,),
    "sad": (_INT,),
    "dp4a": ("u32|s32*",),
    "dp2a": ("lo|hi u32|s32*",),
    **dict.fromkeys(("min", "max"), (f"{_INT}|{_PAIRS}", "relu s32",
                                     f"ftz NaN xorsign abs {_FLOAT}")),
    **dict.fromkeys(("neg", "abs"), (f"{_INT}", f"ftz {_FLOAT}")),
    # bits
    **dict.fromkeys(("and", "or", "xor", "not"), (f"pred|{_WORD}",)),
    **dict.fromkeys(("cnot", "shl"), (_WORD,)),
    "shr": (f"{_WORD}|{_INT}",),
    "shf": ("l|r! clamp|wrap! b32!",),
    "lop3": ("b32",),
    **dict.fromkeys(("popc", "clz", "brev", "bfi"), ("b32|b64",)),
    "bfind": ("shiftamt u32|s32|u64|s64",),
    "bfe": ("u32|s32|u64|s64",),
    "prmt": ("b32 f4e|b4e|rc8|ecl|ecr|rc16",),
    "fns": ("b32",),
    "bmsk": ("clamp|wrap b32",),
    "szext": ("clamp|wrap u32|s32",),
    # floating point
    "fma": (f"{_ROUND}! ftz sat relu {_FLOAT}!",),
    **dict.fromkeys(("rcp", "sqrt"), (f"approx|{_ROUND}! ftz f32|f64!",)),
    "rsqrt": ("approx! ftz f32|f64!",),
    **dict.fromkeys(("ex2", "tanh"), (f"approx! ftz f32|{_HALF}!",)),
    **dict.fromkeys(("lg2", "sin", "cos"), ("approx! ftz f32!",)),
    "copysign": ("f32|f64",),
    "testp": ("finite|infinite|number|notanumber|normal|subnormal f32|f64",),
    # comparison, selection, conversion
    "setp": (f"{_COMPARED} {_WORD}|{_INT}|{_FLOAT}!",),
    "set": (f"{_COMPARED} {_WORD}|{_INT}|{_FLOAT}*",),
    "selp": (f"pred|{_MOVED}",),
    "slct": (f"ftz {_MOVED}*",),
    "cvt": (f"{_ROUND}|rna|rni|rzi|rmi|rpi ftz sat|satfinite relu {_CONVERTED}*",
            "pack sat b32|u8|s8|u16|s16|u32|s32*"),
    # movement
    "mov": (f"pred|{_HELD}|f16x2|bf16x2!",),
    "ld": (f"weak|volatile|relaxed|acquire|mmio {_SCOPE} {_SPACE} nc ca|cg|cs|lu|cv {_CACHED} "
           f"{_PREFETCHED} v2|v4|v8 {_HELD}!",),
    "ldu": (f"global v2|v4 {_HELD}",),
    "st": ("async weak mbarrier::complete_tx::bytes! shared::cluster v2|v4 b32|b64|u32|u64|s32|s64|f32|f64!",
           f"weak|volatile|relaxed|release|mmio {_SCOPE} {_SPACE} wb|cg|cs|wt {_CACHED} "
           f"v2|v4|v8 {_HELD}!",),
    "atom": (_ATOMIC,),
    "red": ("async relaxed cluster mbarrier::complete_tx::bytes! shared::cluster "
            "inc|dec|min|max|add|and|or|xor! u32|s32|u64|b32|b64!", _ATOMIC),
    "cvta": (f"to {_SPACE} u32|u64",),
    "isspacep": (_SPACE,),
    "createpolicy": ("fractional|range|cvt global L2 b64 L2::evict_last|L2::evict_normal|"
                     "L2::evict_first|L2::evict_unchanged*",),
    "prefetch": ("global|local|const|param tensormap L1|L2|L2::evict_last|L2::evict_normal",),
    "prefetchu": ("L1",),
    "discard": ("global L2",),
    "applypriority": ("global L2::evict_normal",),
    # fences
    "membar": ("cta|gl|sys", "proxy alias|async async|global|shared::cta|shared::cluster"),
    "fence": (f"sc|acq_rel|acquire|release {_SCOPE} sync_restrict::shared::cta|"
              "sync_restrict::shared::cluster",
              "mbarrier_init release cluster",
              "proxy alias|async|async::generic|tensormap::generic|async::global|"
              f"async::shared::cta global|shared::cta|shared::cluster acquire|release {_SCOPE} "
              "sync_restrict::shared::cta|sync_restrict::shared::cluster"),
    # warps and blocks
    "shfl": ("sync up|down|bfly|idx b32",),
    "vote": ("sync all|any|uni|ballot pred|b32",),
    "match": ("sync any|all b32|b64",),
    "redux": ("sync add|min|max|and|or|xor b32|u32|s32", "sync min|max abs NaN f32"),
    "activemask": ("b32",),
    "elect": ("sync",),
    "bar": ("warp sync", "cta sync|arrive", "cta red popc|and|or u32|pred"),
    "barrier": ("cta sync|arrive aligned", "cta red popc|and|or aligned u32|pred",
                "cluster arrive|wait release|relaxed|acquire aligned"),
    "nanosleep": ("u32",),
    "griddepcontrol": ("launch_dependents|wait",),
    "setmaxnreg": ("inc|dec sync aligned u32",),
    "pmevent": ("mask",),
    # tensor cores
    **dict.fromkeys(("ldmatrix", "stmatrix"),
                    (f"sync aligned m8n8|m16n8|m16n16|m8n16 x1|x2|x4 trans {_SHARED} b16|b8",)),
    "movmatrix": ("sync aligned m8n8 trans b16",),
    "mma": (f"sync aligned {_SHAPES} row|col* satfinite {_OF_MATRICES}*",),
    "wmma": (f"load a|b|c sync aligned row|col {_SHAPES} global|{_SHARED} {_OF_MATRICES}",
             f"store d sync aligned row|col {_SHAPES} global|{_SHARED} {_OF_MATRICES}",
             f"mma sync aligned row|col* {_SHAPES} rn satfinite {_OF_MATRICES}*"),
    "wgmma": (f"mma_async sync! aligned! {_WGMMA_SHAPES}! satfinite f16|f32|s32|bf16|tf32|e4m3|e5m2|s8|u8*!",
              "fence|commit_group|wait_group! sync! aligned!"),
    # clusters
    "mapa": (f"{_SHARED} u32|u64!",),
    "getctarank": (f"{_SHARED} u32|u64!",),
    # asynchronous copies
    "cp": (*_BULK, f"async ca|cg shared|shared::cta global L2::cache_hint {_PREFETCHED}",
           "async commit_group|wait_group|wait_all",
           "async mbarrier arrive noinc shared|shared::cta b64"),
    "mbarrier": (f"init|inval {_SHARED} b64",
                 f"arrive|arrive_drop expect_tx|noComplete release|relaxed {_SCOPE} {_SHARED} b64",
                 f"expect_tx|complete_tx relaxed {_SCOPE} {_SHARED} b64",
                 f"test_wait|try_wait parity acquire|relaxed {_SCOPE} {_SHARED} b64",
                 "pending_count b64"),
    # control
    **dict.fromkeys(("bra", "call", "ret"), ("uni",)),
    "brx": ("idx uni",),
    **dict.fromkeys(("exit", "trap", "brkpt"), ("",)),
}  # fmt: skip

# Words of the PTX ISA that make another instruction of it, which this machine does not have.
OUTSIDE = {
    "multimem", "im2col", "im2col::w", "im2col::w::128", "im2col_no_offs", "tile::gather4",
    "tile::scatter4", "cta_group::1", "cta_group::2", "sp", "sp::ordered_metadata", "block_scale", "mxf8f6f4", "BoolOp",
    "e2m1", "e2m3", "e3m2", "b1", "u4", "s4",
}  # fmt: skip


def check(ins: Instruction) -> None:
    """Raises Unsupported for a modifier that its opcode does not take, or two that exclude each other."""
    problem = _problem(ins.parts)
    if problem:
        why = "" if OUTSIDE.intersection(ins.parts) else f": {problem}"
        raise Unsupported(f"{ins.opcode} is not supported{why}", ins.line, ins.text)


@lru_cache(maxsize=4096)
def _problem(parts: tuple[str, ...]) -> str:
    """What is wrong with these words; "" for nothing, and for an opcode that is not in the table."""
    opcode, *words = parts
    forms = [_groups(form) for form in FORMS.get(opcode, ())]
    if not forms or any(_fits(words, form) for form in forms):
        return ""
    known = sorted({word for form in forms for group in form for word in group.words})
    for word in words:
        if word not in known:
            near = _nearest(word, known)
            hint = f"; did you mean .{near}?" if near else ""
            return f"{opcode} takes no .{word} here{hint}"
    for form in forms:
        lacking = [group for group in form if group.needed and not group.words.intersection(words)]
        if len(lacking) == 1 and _fits([*words, min(lacking[0].words)], form):
            choices = ", ".join(f".{word}" for word in _choices(opcode, lacking[0]))
            return f"{opcode} needs one of {choices}"
    return f"its modifiers do not go together; {opcode} takes {_written(opcode)}"


def _nearest(word: str, known: list[str]) -> str | None:
    """The known word with the same letters in another order or case; else one that is much alike."""
    letters = sorted(word.lower())
    same = [other for other in known if sorted(other.lower()) == letters]
    near = get_close_matches(word, same, 1, 0) or get_close_matches(word, known, 1)
    return next(iter(near), None)


@dataclass(frozen=True)
class Group:
    """Words of which one may be taken; `several` if more than one may, `needed` if one must."""

    words: frozenset[str]
    several: bool
    needed: bool


@cache
def _groups(form: str) -> tuple[Group, ...]:
    return tuple(
        Group(frozenset(group.rstrip("*!").split("|")), "*" in group, "!" in group)
        for group in form.split()
    )


def _fits(words: list[str], form: tuple[Group, ...]) -> bool:
    """Whether each word has a group of its own, the first that is free, which suffices here; and
    whether no group is left that is needed.
    """
    free = list(form)
    for word in words:
        group = next((group for group in free if word in group.words), None)
        if group is None:
            return False
        if not group.several:
            free.remove(group)
    return not any(group.needed for group in free if not group.words.intersection(words))


def _choices(opcode: str, group: Group) -> list[str]:
    """The words of a group in the order of the table."""
    written = (one.rstrip("*!").split("|") for form in FORMS[opcode] for one in form.split())
    return next(words for words in written if group.words == set(words))


def _written(opcode: str) -> str:
    """The forms as PTX manuals write choices: `{.lo,.hi}{.u32,.s32}`."""
    return " or ".join(
        "".join(
            "{" + ",".join(f".{word}" for word in g.rstrip("*!").split("|")) + "}"
            for g in form.split()
        )
        for form in FORMS[opcode]
    )
