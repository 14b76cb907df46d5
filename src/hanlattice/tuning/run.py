"""The function ``tune``: checks a search, then starts or resumes it in a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hanlattice.atomic import locked
from hanlattice.build import check
from hanlattice.config.files import load_config
from hanlattice.config.linear import linear_settings
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError, EngineError, WriteError
from hanlattice.training.corpora import load_corpora
from hanlattice.training.resume import refuse_changed_files, write_inputs
from hanlattice.tuning.folder import Definition, Pruner, StudyFolder, without_test
from hanlattice.tuning.results import Tuning
from hanlattice.tuning.space import Space, read_options, read_space
from hanlattice.tuning.watcher import Silent, Watcher

if TYPE_CHECKING:
    from hanlattice.tuning.search import Limits

Searched: TypeAlias = Mapping[str, Any] | str | Path | Sequence[str] | None
TRIALS = 20  # if neither trials nor hours are limited


def tune(
    config: Config | str | Path | None = None,
    *,
    output: str | Path,
    search: Searched = None,
    trials: int | None = None,
    hours: float | None = None,
    seeds: Sequence[int] | None = None,
    jobs: int = 1,
    pruner: str | None = None,
    prune_from: int | None = None,
    search_seed: int | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
) -> Tuning:
    """Search for the values of settings with the highest dev F1. Test is not read.

    Args:
        config: the settings of all trials, or a TOML file with them. A resumed search may omit what it has.
        output: the folder of the search.
        search: for each setting to search, by dotted name, ``"LOW..HIGH"``, ``"LOW..HIGH:log"``,
            ``"LOW..HIGH:STEP"`` or a list of values; or a TOML file with them; or options such as
            ``"encoder.heads=4,8"``.
        trials: the largest number of trials; 20 by default, or any number if ``hours`` is given.
        hours: the time after which the search stops; trials that are being trained stop after an epoch.
        seeds: random seeds of training; a trial is trained with each of them, and their mean F1 counts.
        jobs: parallel runs; with more than one, each run is a process with one thread.
        pruner: ``median``, ``halving`` or ``none``: which trials are stopped early.
        prune_from: the first epoch after which a trial may be stopped early.
        search_seed: the random seed of the proposals.
        resume: continue the search in the folder.
        watcher: receives progress events.

    Raises:
        ConfigError: a setting to search does not exist or has a wrong value, the folder holds a search and
            ``resume`` is not set, or the search in it is another one, or it has other files that a search writes.
        DataError: a corpus or the journal of the search cannot be read; or a file cannot be written, such as on a
            full disk, and then the trial resumes with the search.
        EngineError: Optuna is not installed.
    """
    further: dict[str, Any] = {"pruner": pruner, "prune_from": prune_from, "search_seed": search_seed}
    if seeds is not None:
        further["seeds"] = tuple(seeds)
    if find_spec("optuna") is None:
        raise EngineError("a search needs Optuna: pip install 'hanlattice[tune]'")
    from hanlattice.tuning.search import Limits

    limits = Limits(TRIALS if trials is None and hours is None else trials, hours, jobs)
    return _run(Path(output), config, search, further, limits, resume, watcher or Silent())


def _run(
    output: Path,
    config: Config | str | Path | None,
    search: Searched,
    further: Mapping[str, Any],
    limits: "Limits",
    resume: bool,
    watcher: Watcher,
) -> Tuning:
    """Start or resume a search; ``further`` are arguments of :class:`Definition` that were given."""
    from hanlattice.tuning.search import Search

    folder = StudyFolder(output)
    saved = folder.load()
    known = ConfigError(f"{output} already holds a search: continue it with --resume, or name another folder")
    if saved is not None and not resume:
        raise known
    if saved is None and resume:
        raise ConfigError(f"{output} holds no search to resume; name its folder, or leave out --resume")
    definition = _definition(saved, config, search, further)
    if saved is None:
        folder.refuse_other_files()
        _check(definition)
        folder.path.mkdir(parents=True, exist_ok=True)
    else:
        folder.check_same(saved, definition)
        refuse_changed_files(folder.path, without_test(definition.config))
    with locked(folder.lock, folder.path):
        if saved is None:
            if folder.load() is not None:  # another process was faster
                raise known
            folder.save(definition)
            write_inputs(folder.path, without_test(definition.config))
        try:
            return Search(definition, folder, limits, watcher).run()
        except OSError as error:  # of Optuna
            raise WriteError(f"cannot be written: {error.strerror or error}", folder.journal) from error


def _definition(
    saved: Definition | None,
    config: Config | str | Path | None,
    search: Searched,
    further: Mapping[str, Any],
) -> Definition:
    """The search that the arguments describe; what they leave out is that of the saved search, or the default."""
    if saved is not None and config is None:
        base = saved.config
    else:
        base = config if isinstance(config, Config) else load_config(config)
    space = saved.space if saved is not None and search is None else _space(search or {}, base)
    given = {name: value for name, value in further.items() if value is not None}
    if (name := given.get("pruner")) is not None:
        if name not in list(Pruner):
            raise ConfigError(f"pruner must be one of {', '.join(map(repr, map(str, Pruner)))}, not {name!r}")
        given["pruner"] = Pruner(name)
    return replace(saved or Definition(base, space), config=base, space=space, **given)


def _space(search: Mapping[str, Any] | str | Path | Sequence[str], base: Config) -> Space:
    check(base)
    if isinstance(search, Mapping):
        return read_space(search, base)
    options = read_options([str(search)] if isinstance(search, str | Path) else search)
    values = {name: value for name, (_, value) in options.items()}
    return read_space(values, base, {name: source for name, (source, _) in options.items()})


def _check(definition: Definition) -> None:
    """Check a new search before anything is written; this reads the corpora.

    Raises:
        ConfigError: the settings cannot be searched.
        DataError: a corpus cannot be read.
    """
    seeds = definition.seeds
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"give each seed once, and at least one, not {', '.join(map(str, seeds)) or 'none'}")
    if definition.prune_from < 1:
        raise ConfigError(f"prune_from must be at least 1, not {definition.prune_from}")
    if linear_settings(definition.config) is not None:
        raise ConfigError("a linear tagger has no epochs that could be resumed, so its settings cannot be searched")
    for seed in seeds:
        check(definition.config.with_settings({"training": {"seed": seed}}))
    load_corpora(without_test(definition.config))
