"""Settings of a service."""

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from hanlattice.api import EngineName
from hanlattice.errors import ConfigError
from hanlattice.kernels.cores import n_cores


def lexicon_folder() -> Path:
    """The default folder of stored lexicons, in the data folder of the user.

    Raises:
        ConfigError: the user has no home folder.
    """
    folder = os.environ.get("XDG_DATA_HOME")
    try:
        home = Path(folder) if folder else Path.home() / ".local" / "share"
    except RuntimeError:
        raise ConfigError(
            "this user has no home folder; name a folder for stored lexicons with --lexicons"
        ) from None
    return home / "hanlattice" / "lexicons"


READY = "ready"  # a worker sends this when it can serve; any other message is an error
# The environment variable in which prometheus_client looks for the folder of the metrics that all workers share.
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
TOKEN = re.compile(r"[\x21-\x7e]{8,}")
TOKEN_FORM = "a token has at least 8 characters, all of them ASCII and none a space"
_RANGES = {"threshold": (0, 1), "port": (0, 65_535), "threads": (0, 1024), "max_wait_ms": (0, 60_000)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a service. Times are in seconds unless the name says otherwise, sizes in bytes.

    Attributes:
        model: folder of a model; None for the packaged one.
        convention: annotation convention of requests that name none; empty for the model's default.
        patterns: regular entities that are found too, if a request does not say otherwise: ``all``, some kinds such
            as ``DATE,MONEY``, or a TOML file; empty for none.
        engine, int8, device, trust: as in :func:`hanlattice.load`.
        words: files whose words are added to the lexicon of the model.
        force, block, threshold: for requests that name none; a text and its label, and a text and the labels that
            it never has, None for all.
        host, port: address of the service; port 0 for any free one.
        root_path: path under which a proxy offers the service, such as ``/ner``; empty for none.
        workers: number of worker processes.
        lexicons: folder of the stored lexicons.
        token: clients must send it as ``Authorization: Bearer …``; None for no authentication.
        threads: threads per worker; 0 divides the cores among the workers.
        max_batch: texts per batch.
        max_batch_chars: characters per batch, so that short texts do not wait long for long ones.
        max_wait_ms: how long an idle worker waits for more texts before it starts a batch.
        max_queue: texts that may wait in a worker; further requests get status 503.
        max_texts, max_chars: texts per request, and characters per text.
        max_body, max_lexicon_body: bytes of a request, and of a request that stores a lexicon.
        max_lexicons: number of stored lexicons.
        answer_timeout: until a request without a response gets status 504, including waiting.
        client_timeout: for a client to send its request, and to receive the response.
        drain_timeout: for open requests to finish after SIGTERM.

    Raises:
        ConfigError: a setting is out of range, or two contradict each other.
    """

    model: str | None = None
    convention: str = ""
    patterns: str = ""
    engine: EngineName = "auto"
    int8: bool | None = None
    device: str = "cpu"
    words: tuple[Path, ...] = ()
    force: tuple[tuple[str, str], ...] = ()
    block: tuple[tuple[str, tuple[str, ...] | None], ...] = ()
    threshold: float = 0.0
    trust: bool = False
    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""
    workers: int = 1
    threads: int = 0
    lexicons: Path = field(default_factory=lexicon_folder)
    token: str | None = None
    max_batch: int = 64
    max_batch_chars: int = 8192
    max_wait_ms: float = 5.0
    max_queue: int = 512
    max_texts: int = 64
    max_chars: int = 10_000
    max_body: int = 4 * 2**20
    max_lexicon_body: int = 32 * 2**20
    max_lexicons: int = 256
    answer_timeout: float = 30.0
    client_timeout: float = 10.0
    drain_timeout: float = 30.0

    def __post_init__(self) -> None:
        at_least_one = (
            "workers",
            "max_batch",
            "max_batch_chars",
            "max_queue",
            "max_texts",
            "max_chars",
            "max_body",
            "max_lexicon_body",
            "max_lexicons",
        )
        for name in at_least_one:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("answer_timeout", "client_timeout", "drain_timeout"):
            if not 0 < getattr(self, name) < math.inf:  # also if it is NaN
                raise ConfigError(f"{name} must be a number of seconds above 0, not {getattr(self, name)}")
        for name, (least, most) in _RANGES.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigError(f"{name} must be from {least} to {most}, not {getattr(self, name)}")
        if self.max_texts > self.max_queue:
            raise ConfigError(
                f"a request of {self.max_texts} texts never fits into a queue of {self.max_queue};"
                " raise max_queue or lower max_texts"
            )
        if self.root_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", self.root_path):
            raise ConfigError(f"a root path begins with / and does not end with it, unlike {self.root_path!r}")
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise ConfigError(TOKEN_FORM)

    @property
    def threads_of_a_worker(self) -> int:
        return self.threads or max(1, n_cores() // self.workers)
