"""Every mistake on the device itself: what it says there, and whether that finds it."""

from dataclasses import asdict
from functools import partial
from typing import Any

from core.lessons.mistakes import runner
from core.lessons.mistakes.catalogue import BY_SLUG, Failure, MistakeRun
from to_device.explain.explainer import explain, knowledge
from to_device.sim.simulation import in_cuda_words
from tools.accelerator.step import Part, Results, Setting, WrongError, work_through

UNTRIED = "the messages of an accelerator: moves go to the simulated one."
TINY = ("data_not_moved", "softmax_before_loss")
SECONDS = 15.0  # for one, both halves


def run(setting: Setting, results: Results) -> None:
    chosen = TINY if setting.tiny else BY_SLUG
    parts = [Part(slug, SECONDS, partial(make, slug)) for slug in chosen]
    search = Part("search", 5.0, partial(find, results), last=True)
    work_through([*parts, search], setting, results)


def make(slug: str) -> dict[str, Any]:
    """Both halves, as the page runs them: the one fails or misleads, the other not."""
    found = runner.run(slug)
    if said := complaint(found):
        raise WrongError(said, asdict(found))
    return asdict(found)


def complaint(found: MistakeRun) -> str:
    """What is not as it has to be, in a sentence; else nothing."""
    broken, loud = found.broken, BY_SLUG[found.slug].loud
    for outcome in found.fixed:
        if outcome.died:
            return f"The process of the fix died on {outcome.device}: {outcome.died}"
        if outcome.failure:
            return f"The fix fails on {outcome.device}: {outcome.failure.message}"
    if broken.died:
        return f"The process of the mistake died: {broken.died}"
    if loud and broken.failure is None:
        return f"On {broken.device} it raises nothing: {broken.result}"
    if not loud and broken.failure:
        return f"It is silent, and raised {broken.failure.message}"
    return ""


def find(results: Results) -> dict[str, Any]:
    """What the search answers to each traceback."""
    ends = {
        slug: Failure(**part["found"]["broken"]["failure"])
        for slug, part in results.parts.items()
        if slug in BY_SLUG and (part["found"] or {}).get("broken", {}).get("failure")
    }
    found = {}
    for slug, end in ends.items():
        answer = explain(in_cuda_words(end.traceback))
        found[slug] = answer.cause.slug if answer.cause else answer.kind
    missed = [slug for slug in found if found[slug] not in knowledge().causes]
    if missed:
        said = f"Not explained by the whole traceback: {', '.join(missed)}."
        raise WrongError(said, found)
    return found
