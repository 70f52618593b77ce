"""PTX text in, a program out: parsing, the modifiers that an opcode takes, and control flow."""
