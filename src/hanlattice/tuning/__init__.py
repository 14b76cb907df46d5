"""Search for good values of any settings, by dev F1.

```python
search = {"training.learning_rate": "1e-4..1e-2:log", "encoder.heads": [4, 8]}
print(tune("settings.toml", output="runs/search", search=search, trials=30).best)
```

In reading order:

1. `space` reads the settings to search, with their ranges or values, and checks them.
2. `study` proposes values with Optuna, decides which trials are pruned, and stores both in the folder.
3. `search` trains each proposal with each seed; the runs are those of :mod:`hanlattice.comparison`.
4. `folder` keeps the definition of a study, the folders of its trials, and the best settings.
5. `results` are what a search gives.
6. `run` checks a search, and starts or resumes it.
"""

from hanlattice.tuning.results import TunedTrial, Tuning
from hanlattice.tuning.run import tune
from hanlattice.tuning.watcher import Silent, Watcher

__all__ = ["Silent", "TunedTrial", "Tuning", "Watcher", "tune"]
