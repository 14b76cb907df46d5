"""The worker process: reads a job and then chunks from standard input, and writes one part for each chunk.

Messages are pickled, in both directions. The parent process starts the worker, so the pickles are trusted.
"""

import os
import pickle
import sys

from hanlattice.annotation.annotator import Annotator
from hanlattice.errors import HanlatticeError


def main() -> None:
    """Serve requests until the parent process closes the pipe or an error is reported."""
    requests = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as responses:
        os.dup2(2, 1)  # output that a library prints must not mix with the responses

        def respond(kind: str, content: object) -> None:
            pickle.dump((kind, content), responses, pickle.HIGHEST_PROTOCOL)
            responses.flush()

        try:
            annotator = Annotator(pickle.load(requests))
            respond("ready", None)
            while True:
                respond("part", annotator(pickle.load(requests)))
        except HanlatticeError as error:
            respond("error", str(error))
        except (EOFError, BrokenPipeError):
            return  # the parent process has ended
        except Exception as error:
            respond("error", f"unexpected {type(error).__name__}: {error}")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(1)  # immediately, since the buffered output has no reader
