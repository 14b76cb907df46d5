"""Comparison of systems: each is trained with the same seeds, and one table has their scores, sizes and speeds.

```python
rows, failures = compare({"bilstm": a, "flat": b}, "runs/table", seeds=(1, 2, 3), jobs=2)
```

How systems become a table, in reading order:

1. `run` makes a trial of each system and seed, and runs them one by one or in parallel.
2. A `trial` trains and scores one system with one seed, and saves the result in its folder.
3. `running` runs trials in this process, or by `workers` in processes, each of which executes `__main__`.
4. `speed` measures all systems together, after training.
5. `table` makes one row per system: means over seeds, and differences with their significance.
"""

from hanlattice.comparison.run import Silent, Watcher, compare
from hanlattice.comparison.table import MeanF1, Row

__all__ = ["MeanF1", "Row", "Silent", "Watcher", "compare"]
