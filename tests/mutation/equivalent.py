"""Generated mutants that change nothing a caller could notice, with the reason.

A key is :attr:`mutation.operators.Mutant.key`. Only these are excused; a mutant that no test notices otherwise is a
test that is missing.
"""

EQUIVALENT: dict[str, str] = {}
