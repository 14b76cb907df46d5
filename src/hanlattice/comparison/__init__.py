"""Systems side by side: the same corpora and seeds for each, one table of what they score and what they cost.

```python
rows = compare({"bilstm": a, "flat": b}, "runs/table", seeds=(1, 2, 3), jobs=2)
```
"""

from hanlattice.comparison.study import Silent, Watcher, compare
from hanlattice.comparison.table import Row, Spread

__all__ = ["Row", "Silent", "Spread", "Watcher", "compare"]
