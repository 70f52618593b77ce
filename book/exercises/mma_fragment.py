"""Which elements of A the lanes of a warp hold in their registers for mma.m16n8k16."""


def a_element(lane: int, half: int) -> tuple[int, int]:
    """(row, column) of A that half `half` (0-7) of a lane's four registers holds. PTX ISA 9.7.14.5.8, m16n8k16."""
    group, pair = lane // 4, lane % 4
    return group + half // 2 % 2 * 8, 2 * pair + half % 2 + half // 4 * 8
