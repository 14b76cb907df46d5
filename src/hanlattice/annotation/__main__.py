"""A worker: a job and then chunks come in, pickled, and a part goes out for each, until there are no more."""

import os
import pickle
import sys

from hanlattice.annotation.annotator import Annotator
from hanlattice.errors import HanlatticeError


def main() -> None:
    given = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # what a library prints must not come between the answers

        def say(kind: str, what: object) -> None:
            pickle.dump((kind, what), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()

        try:
            annotator = Annotator(pickle.load(given))
            say("ready", None)
            while True:
                say("part", annotator(pickle.load(given)))
        except HanlatticeError as error:
            say("error", str(error))
        except (EOFError, BrokenPipeError):
            return  # whoever gave the work has ended
        except Exception as error:
            say("error", f"unexpected {type(error).__name__}: {error}")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        os._exit(1)  # at once: what is left to be written has no reader
