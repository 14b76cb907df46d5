"""The folder of a model: what its files are called, and what every engine reads of it."""

from dataclasses import dataclass
from pathlib import Path

from hanlattice.config import Config, load_config
from hanlattice.errors import ConfigError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER, Engine
from hanlattice.vocab import Vocabulary

CONFIG, WEIGHTS, VOCABULARY, LEXICON, CARD = (
    "config.toml",
    "model.safetensors",
    "vocabulary.json",
    "lexicon.txt",
    "README.md",
)
LOG = "log.jsonl"  # one line an epoch, of a model that training made
GRAPH = "model.onnx"  # of an exported model; its tables lie in the weights
SCALE = "::scale"  # ends the name of the scales of a table that is stored in 8 bits
DEFAULT = Path(__file__).parent / "models" / "default"


@dataclass(frozen=True)
class ModelFolder:
    """A model on disk, but for its weights."""

    path: Path
    config: Config
    vocabulary: Vocabulary

    @classmethod
    def open(cls, path: str | Path | None = None) -> "ModelFolder":
        """The folder at a path; without one, that of the model inside the package.

        Raises:
            ModelError: it is missing, broken, or holds no model of this library.
        """
        if path is None and not DEFAULT.is_dir():
            raise ModelError("this installation has no packaged model; name the folder of one (--model FOLDER)")
        path = DEFAULT if path is None else Path(path)
        if not path.is_dir():
            raise ModelError(f"{path}: no such folder; train a model with: hanlattice train --output {path}")
        if not (path / CONFIG).is_file():
            raise ModelError(f"{path}: holds no {CONFIG}, so it is not the folder of a hanlattice model")
        vocabulary = Vocabulary.load(path / VOCABULARY)
        try:
            return cls(path, load_config(path / CONFIG), vocabulary)
        except ConfigError as error:
            raise ModelError(f"{path}: {error}") from error

    def read_by(self, engine: Engine) -> NER:
        """The model, run by an engine."""
        ner = NER(engine, self.vocabulary, Lexicon.open(self.path / LEXICON), self.config)
        ner.lexicon.rewrite = lambda words: ner.normaliser(words).text
        return ner
