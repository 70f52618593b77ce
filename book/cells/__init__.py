"""What the chapters' code cells call: answers checked, traces and recordings shown, sources changed."""
