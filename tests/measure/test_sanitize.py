"""What compute-sanitizer and the emulator say of a rung as it is."""

from measure.sanitize import emulated, parse


def test_a_rung_as_it_is_has_nothing_to_be_found():
    assert emulated("tiled") == ""


def test_what_compute_sanitizer_prints_is_counted_by_kernel():
    output = """=== tiled
========= Error: Race reported between Write access and Read access
=========     in tiled
========= Error: Race reported between Read access and Write access
=== naive
========= ERROR SUMMARY: 0 errors
=== end
"""
    found = parse(output)
    assert found["naive"] == (0, "") and set(found) == {"tiled", "naive"}
    assert found["tiled"] == (2, "Error: Race reported between Write access and Read access")
