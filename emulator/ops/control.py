"""Control flow: these make no steps, `text.blocks` and `text.inlining` see to them (PTX ISA 9.7.12)."""

from emulator.text.rows import Row

OPCODES = {
    "bra": {"uni": Row(None, (1,), types="-", spread="none")},
    "brx": {"idx! uni": Row(None, (2,), types="-", spread="none")},
    "call": {"uni": Row(None, (1, 2, 3, 4), types="-", spread="none")},
    "ret": {"uni": Row(None, (0,), types="-", spread="none")},
    "exit": {"": Row(None, (0,), types="-", spread="none")},
    "trap": {"": Row(None, (0,), types="-", spread="none")},
    "brkpt": {"": Row(None, (0,), types="-", spread="none")},
}
