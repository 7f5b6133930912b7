import os
import subprocess
import sys
import time

from core.measure import processors
from core.measure.processors import ProcessorMeter

SPIN = "import time; print(flush=True)\nwhile True: pass"
count = os.cpu_count() or 1


def test_the_work_of_others_is_told_from_ones_own():
    meter = ProcessorMeter()
    with subprocess.Popen([sys.executable, "-c", SPIN], stdout=-1) as spinning:
        spinning.stdout.readline()
        began = time.perf_counter()
        meter.begin()
        time.sleep(0.6)
        asleep = meter.end(time.perf_counter() - began)
        spinning.kill()
    assert asleep.own < 0.3
    assert asleep.others * count > 0.3

    began, worked = time.perf_counter(), time.process_time()
    meter.begin()
    while time.process_time() < worked + 0.3:
        pass
    awake = meter.end(time.perf_counter() - began)
    assert awake.own > asleep.own
    assert 0 <= awake.others <= 1


def test_without_the_clocks_of_others_nothing_is_known(monkeypatch):
    monkeypatch.setattr(processors, "busy_seconds", lambda: None)
    meter = ProcessorMeter()
    meter.begin()
    assert meter.end(1.0) is None
