"""Why torch trains on what it trains on: from facts about a machine to a diagnosis.

No torch here and no looking around: `core.machine.facts` collects, this file concludes.
So every cause of "no GPU" can be tested on any machine.
"""

from collections.abc import Callable
from dataclasses import replace

from core.machine.causes import accelerator, build, driver, mac
from core.machine.results import Diagnosis, Facts

# In this order: each one may take for granted that those before it did not apply.
CAUSES: tuple[Callable[[Facts], Diagnosis | None], ...] = (
    accelerator.works,
    accelerator.architecture_missing,
    accelerator.computation_failed,
    mac.rosetta,
    mac.intel_mac,
    mac.mps_not_built,
    mac.macos_too_old,
    mac.mps_unavailable,
    build.cpu_build,
    build.other_build,
    driver.wsl_without_driver,
    driver.not_passed_through,
    driver.no_driver,
    driver.driver_too_old,
    driver.no_kfd,
    driver.no_permission,
    driver.hidden,
    driver.cuda_failed,
    driver.rocm_failed,
    driver.xpu_without_driver,
    build.no_gpu,
)


def diagnose(facts: Facts) -> Diagnosis:
    """The first cause that applies; the last one always does."""
    found = ((cause(facts), cause.__name__) for cause in CAUSES)
    return next(replace(each, cause=name) for each, name in found if each)
