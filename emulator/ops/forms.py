"""Groups of modifiers that several opcodes take (see `text.modifiers` for how forms are written)."""

ROUND = "rn|rz|rm|rp"
INT = "u16|s16|u32|s32|u64|s64"
CARRIED = "u32|s32|u64|s64"
WORD = "b16|b32|b64"
PAIRS = "u16x2|s16x2"
HALF = "f16|f16x2|bf16|bf16x2"
FLOAT = f"f32|f32x2|f64|{HALF}"
MOVED = f"{WORD}|{INT}|f16|bf16|f32|f64"
HELD = f"b8|u8|s8|b128|{MOVED}"
LOGIC = "and|or|xor"

SHARED = "shared|shared::cta|shared::cluster"
SPACE = f"global|local|const|param|param::entry|param::func|{SHARED}"
SCOPE = "cta|cluster|gpu|sys"
CACHED = (
    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate "
    "L2::evict_normal|L2::evict_unchanged|L2::evict_first|L2::evict_last L2::cache_hint"
)
PREFETCHED = "L2::64B|L2::128B|L2::256B"
