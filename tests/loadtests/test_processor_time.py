"""Who used the processor."""

import os
import subprocess
import sys
from time import process_time

from loadtests.processor_time import Moment, cores_used, moment, process_s

STAT = """\
cpu  900 900 900 900 900 900 900 900 0 0
cpu0 100 10 50 7000 300 1 4 20 0 0
cpu1 200 0 100 6000 100 0 0 0 30 0
cpu10 900 0 0 0 0 0 0 500 0 0
intr 1 2 3
"""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def test_only_the_cores_that_may_be_used_count() -> None:
    assert cores_used(STAT, {0, 1}) == (465 * TICK_S, 20 * TICK_S)
    assert cores_used(STAT, {1}) == (300 * TICK_S, 0)


def test_what_nobody_of_ours_used_is_foreign() -> None:
    usage = Moment(10, 1, 5, 100, 7).until(Moment(12, 2, 5.5, 103, 8))
    assert (usage.server_s, usage.own_s, usage.foreign_s) == (1, 0.5, 1.5)
    assert (usage.foreign_cores, usage.stolen_cores) == (0.75, 0.5)


def test_foreign_use_is_never_negative() -> None:
    assert Moment(0, 0, 0, 0, 0).until(Moment(1, 0.6, 0.5, 1.0, 0)).foreign_s == 0


def test_our_own_work_and_that_of_ended_children_is_ours() -> None:
    before = moment(os.getpid())
    burn = "import time\nwhile time.process_time() < 0.1: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    until_s = process_time() + 0.1
    while process_time() < until_s:
        pass
    usage = before.until(moment(os.getpid()))
    assert usage.own_s >= 0.2


def test_a_process_that_has_ended_uses_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert process_s(ended.pid) == 0
