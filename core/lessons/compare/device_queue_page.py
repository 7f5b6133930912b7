"""What a host and a device with a queue do, and when, as the Compare page shows it."""

import streamlit as st

from core.jobs.job import Job
from core.lessons.compare.device_queue_result import (
    CALLS,
    COMPUTES,
    QUEUES,
    WAITS,
    QueueLab,
)
from core.lessons.compare.step_profile_page import lane_chart
from core.lessons.mistakes.catalogue_page import link_to
from core.measure.environment import Machine
from core.ui import charts, simulated
from core.ui.lab import Finding, Lab
from to_device.names import SIMULATED


class DeviceQueue(Lab):
    key = "watch_queue"
    code = (("The calls", "core.lessons.compare.device_queue:multiply"),)

    def defaults(self, machine: Machine) -> tuple:
        if not (machine.simulates or machine.has_accelerator):
            raise ValueError(self.words["no_queue"])
        return (SIMULATED if machine.simulates else machine.devices[0].device,)

    def progress(self, _: Job) -> str:
        return self.words["progress"]

    def finding(self, lab: QueueLab) -> Finding:
        done = lab.alone.done_by_then
        answers = self.words["answers"]
        right = answers[0 if done < 2 else 1 if done < CALLS - 1 else 2]
        found = self.words["found"].format(done, lab.alone.share)
        if right != answers[0]:
            found += f" {self.words['late']}"
        return Finding(found, right)

    def chart(self, lab: QueueLab) -> None:
        colors, percent = charts.palette(), 100 / lab.alone.waited
        rows, clocks = [], []
        for name, timeline in (("Alone", lab.alone), ("With .item()", lab.fetched)):
            for span in timeline.spans:
                ends = span.start * percent, span.end * percent
                rows.append((f"{name}: {span.lane}", span.part, *ends))
            early = timeline.share < 0.8
            at = timeline.stopped * percent
            text = f"{timeline.share:.0%} ✗ too early" if early else "✓ all done"
            clocks.append((f"{name}: host", at, text, early))
        chart = lane_chart(
            rows,
            clocks,
            {QUEUES: colors.cpu, WAITS: colors.low, COMPUTES: colors.accelerator},
            "% of the time that the products take alone",
        )
        device = lab.environment.device.partition(":")[0]
        with simulated.outline(f"queue{self.suffix}", True, device):
            alt = "When the host calls and waits, and when the device computes"
            st.altair_chart(chart, alt=alt)

    def lines(self, _: QueueLab) -> list[str]:
        return self.words["lines"]

    def below(self, _: QueueLab) -> None:
        link_to("timing_unsynchronized")

    def caption(self, lab: QueueLab) -> str:
        kind = "simulated" if lab.environment.is_simulated else "real"
        return self.words["how"][kind].format(CALLS, lab.size)
