"""A body divided into basic blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from emulator.errors import PtxError, Unsupported
from emulator.text.program import Instruction, Label, Reg
from emulator.text.rows import Table, row_of


@dataclass
class Block:
    """Straight-line code. `head` says which lanes its first instruction makes meet: see `rows.Row.meets`.

    ends: "jump" (targets[0]), "branch" (targets[0] if the predicate holds, else targets[1]), "switch"
    (targets[index]), "exit", "trap".
    """

    code: list[Instruction] = field(default_factory=list)
    head: str = ""
    ends: str = "jump"
    targets: list[int] = field(default_factory=list)
    guard: tuple[Reg, bool] | None = None
    last: Instruction | None = None  # the control instruction itself, if there is one


def divide(body: list, tables: dict[str, tuple[str, ...]], opcodes: Table) -> list[Block]:
    """Basic blocks of a body without calls. tables: the `.branchtargets`, by name."""
    blocks, labels, ends = [Block()], {}, []
    together = None  # the last block that warps enter with all their lanes

    def start(head: str = "") -> Block:
        """A new block that the present one falls into."""
        here = blocks[-1]
        if here.code or here.last or here.head:
            if here.ends == "jump" and not here.targets:
                here.targets = [len(blocks)]
            blocks.append(Block())
        blocks[-1].head = head
        return blocks[-1]

    for item in body:
        if isinstance(item, Label):
            start()
            labels[item.name] = len(blocks) - 1
            continue
        root, here = item.parts[0], blocks[-1]
        if here.last is not None:
            here = start()
        if root in ("bra", "exit", "ret", "trap", "brkpt"):
            here.last = item
            kind = {"bra": "jump", "brkpt": "trap", "ret": "exit"}.get(root, root)
            if kind == "jump":
                target = item.operands[0].name
                here.targets = [target]
                if item.guard:
                    here.ends, here.guard = "branch", item.guard
                    here.targets.append(len(blocks))
            elif item.guard:
                here.ends, here.guard = "branch", item.guard
                here.targets = [f"{kind} of {item.index}", len(blocks)]
                ends.append(
                    (
                        f"{kind} of {item.index}",
                        Block(ends=kind, last=item if kind == "trap" else None),
                    )
                )
            else:
                here.ends = kind
        elif root == "brx":
            here.last, here.ends = item, "switch"
            table = item.operands[1].name
            if table not in tables:
                raise PtxError(f"no .branchtargets named {table}", item.line, item.text)
            here.targets = list(tables[table])
            if item.guard:
                raise Unsupported("a guarded brx.idx is not supported", item.line, item.text)
        else:
            row = row_of(opcodes, item)
            head = row.meets if row else ""
            if head and item.guard:  # only the lanes whose guard holds take part: branch around it
                register, negated = item.guard
                if here.code or here.head:
                    here = start()
                here.ends, here.guard = "branch", (register, negated)
                here.targets = [len(blocks), len(blocks) + 1]
                blocks.append(Block(head=head))
                blocks[-1].code.append(replace(item, guard=None))
                blocks[-1].targets = [len(blocks)]
                blocks.append(Block())
                continue
            whole = head == "warp" and row.member is None
            if head and not (whole and here is together):
                here = start(head)
            if whole:
                together = here
            here.code.append(item)
            if head.endswith("barrier"):
                start()
    if blocks[-1].ends == "jump" and not blocks[-1].targets:
        blocks[-1].ends = "exit"
    for name, block in ends:  # where guarded exits and traps lead
        labels[name] = len(blocks)
        blocks.append(block)
    for index, block in enumerate(blocks):
        if block.ends == "jump" and not block.targets:
            block.targets = [index + 1]
        for at, target in enumerate(block.targets):
            if isinstance(target, str):
                if target not in labels:
                    raise PtxError(f"no label {target}", block.last.line, block.last.text)
                block.targets[at] = labels[target]
    return blocks
