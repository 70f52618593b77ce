"""What a run cost, from its addresses: wavefronts, sectors, and the trace that holds them."""
