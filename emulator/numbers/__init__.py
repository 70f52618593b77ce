"""Number formats: rounding and conversion bit for bit, and the sums of tensor cores."""
