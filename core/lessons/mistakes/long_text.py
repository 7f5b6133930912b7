"""Explains a long text in a process of its own.

A log of 1 MB takes the explainer some seconds, in which its patterns hold Python's
lock: in the lab worker's own process, everybody else's questions would wait meanwhile.
"""

from dataclasses import fields
from typing import Any

from core.jobs import child_process
from to_device.explain.explainer import Answer, explain, knowledge

SECONDS = 30.0  # after which the reading ends


def answer(text: str) -> Answer:
    """What `explain` says of a text. Raises ChildDiedError after SECONDS."""
    address = f"{explained.__module__}:{explained.__name__}"
    return _answer(child_process.call(address, text, seconds=SECONDS, hostile=True))


def explained(text: str) -> Any:
    """The answer in plain data: causes are their slugs."""
    return _plain(explain(text))


def _plain(told: Answer) -> dict[str, Any]:
    return {field.name: getattr(told, field.name) for field in fields(Answer)} | {
        "cause": told.cause and told.cause.slug,
        "others": [other.slug for other in told.others],
        "near": [_plain(near) for near in told.near],
    }


def _answer(plain: dict[str, Any]) -> Answer:
    causes = knowledge().causes
    cause = plain["cause"]
    others = tuple(causes[slug] for slug in plain["others"])
    near = tuple(map(_answer, plain["near"]))
    return Answer(
        **plain | {"cause": cause and causes[cause], "others": others, "near": near}
    )
