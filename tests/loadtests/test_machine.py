"""Who used the processor."""

import os
import subprocess
import sys
from time import process_time

from loadtests.machine import Moment, moment


def test_what_nobody_of_ours_used_is_foreign() -> None:
    usage = Moment(10, {7: 1}, 5, 100).until(Moment(12, {7: 2}, 5.5, 103))
    assert (usage.server_s, usage.own_s, usage.foreign_s) == (1, 0.5, 1.5)
    assert usage.foreign_cores == 0.75


def test_foreign_use_is_never_negative() -> None:
    assert Moment(0, {}, 0, 0).until(Moment(1, {7: 0.6}, 0.5, 1.0)).foreign_s == 0


def test_a_process_of_the_server_that_has_ended_takes_nothing_from_the_others() -> None:
    before, after = Moment(0, {7: 3.0, 8: 1.0}, 0, 0), Moment(1, {8: 1.25, 9: 0.5}, 0, 1)
    assert before.until(after).server_s == 0.75


def test_our_own_work_and_that_of_ended_children_is_ours() -> None:
    before = moment(os.getpid())
    burn = "import time\nwhile time.process_time() < 0.1: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    until_s = process_time() + 0.1
    while process_time() < until_s:
        pass
    usage = before.until(moment(os.getpid()))
    assert usage.own_s >= 0.2
