"""Pools and locks are renewed in a child process, before anything else runs there, while they exist."""

import os

import pytest

from hanlattice.kernels.forking import renew_after_fork


class Pool:
    """Knows the process that made it last."""

    def __init__(self) -> None:
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        self.process = os.getpid()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_what_exists_is_renewed_in_the_child() -> None:
    first, second, gone = Pool(), Pool(), Pool()
    gone.renew = lambda: os._exit(9)  # type: ignore[method-assign]
    del gone
    child = os.fork()
    if not child:
        os._exit(int(not first.process == second.process == os.getpid()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert first.process == second.process == os.getpid()
