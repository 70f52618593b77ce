"""The order in which blocks run, so that threads that branched apart meet again.

The order is topological, each loop contiguous (a weak topological order; Bourdoncle, 1993), and
several back edges to one loop head are led through one latch.
"""

from __future__ import annotations

import heapq

from emulator.text.blocks import Block


def order_of(blocks: list[Block]) -> list[int]:
    """The rank of each block; appends a latch block for every loop head with several back edges."""
    sequence: list[int] = []
    reachable, stack = {0}, [0]
    while stack:
        for target in blocks[stack.pop()].targets:
            if target not in reachable:
                reachable.add(target)
                stack.append(target)

    def place(nodes: set[int]) -> None:
        """Ranks `nodes`, ignoring edges that leave them (back to the head of a loop around them, say)."""
        for component in _components(blocks, nodes):
            if len(component) == 1 and not any(
                t in component for b in component for t in blocks[b].targets
            ):
                sequence.extend(component)
                continue
            entries = {
                t for b in reachable - component for t in blocks[b].targets if t in component
            }
            head = min(entries or component)
            back = [b for b in component if head in blocks[b].targets]
            sequence.append(head)
            place(component - {head})
            if len(back) > 1:
                latch = len(blocks)
                blocks.append(Block(targets=[head]))
                for b in back:
                    blocks[b].targets = [latch if t == head else t for t in blocks[b].targets]
                sequence.append(latch)

    place(reachable)
    rank = {block: position for position, block in enumerate(sequence)}
    return [rank.get(index, len(sequence) + index) for index in range(len(blocks))]


def _components(blocks: list[Block], nodes: set[int]) -> list[set[int]]:
    """Strongly connected components (Tarjan, without recursion), in topological order, ties by position."""

    def following(b: int) -> list[int]:
        return [t for t in blocks[b].targets if t in nodes]

    index: dict[int, int] = {}
    low: dict[int, int] = {}
    owner: dict[int, int] = {}
    stack: list[int] = []
    groups: list[set[int]] = []
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(following(root)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(following(target))))
                    break
                if target not in owner:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while True:
                        member = stack.pop()
                        owner[member] = len(groups)
                        group.add(member)
                        if member == node:
                            break
                    groups.append(group)
    entering = [0] * len(groups)
    for b in nodes:
        for target in set(following(b)):
            entering[owner[target]] += owner[target] != owner[b]
    ready = [(min(groups[g]), g) for g in range(len(groups)) if not entering[g]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, g = heapq.heappop(ready)
        ordered.append(groups[g])
        for b in groups[g]:
            for target in set(following(b)):
                if owner[target] != g:
                    entering[owner[target]] -= 1
                    if not entering[owner[target]]:
                        heapq.heappush(ready, (min(groups[owner[target]]), owner[target]))
    return ordered
