"""Control flow: these make no steps, `text.blocks` and `text.inlining` see to them (PTX ISA 9.7.12)."""

from emulator.text.rows import Row

OPCODES = {
    "bra": {"uni": Row(None, (1,))},
    "brx": {"idx! uni": Row(None, (2,))},
    "call": {"uni": Row(None, (1, 2, 3, 4))},
    "ret": {"uni": Row(None, (0,))},
    "exit": {"": Row(None, (0,))},
    "trap": {"": Row(None, (0,))},
    "brkpt": {"": Row(None, (0,))},
}
