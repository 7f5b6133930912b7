"""A lesson: many people train at once, in rounds, beside the same run alone."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.load.person import Person
from tools.load.record import Meter, Record
from tools.server import CHROMIUM, FLAGS

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from tools.load.witness import Witness


@dataclass(frozen=True)
class Plan:
    """Who comes, and when."""

    url: str
    pid: int | None = None  # the server's, if its memory is to be measured
    people: int = 100  # with the witnesses
    browsers: int = 3  # witnesses: people with a real browser
    rounds: int = 1  # how many times the same people come
    arrival_seconds: float = 20.0  # from the first who comes to the last
    alone: int = 4  # runs of one person alone, before the rounds and again after them
    rest_seconds: float = 3.0  # after a round, for what the server tidies up
    door: str = ""  # the address by which all join a class first, if there is one


@dataclass(frozen=True)
class Lesson:
    """What was measured."""

    plan: Plan
    alone: Record
    rounds: list[tuple[Record, Meter]]


async def hold(plan: Plan) -> Lesson:
    """Let the people of the plan come and go."""
    threads = ThreadPoolExecutor(plan.people + 1)  # each loads a page by itself
    asyncio.get_running_loop().set_default_executor(threads)
    patience = 120.0 + 3.0 * plan.people  # the workers may still be loading torch
    alone = Record()
    rounds = []
    async with AsyncExitStack() as stack:
        people: list[Person | Witness] = []
        if plan.browsers:
            from tools.load import witness  # needs Playwright

            browser = await stack.enter_async_context(chromium())
        for number in range(plan.people):
            # Spread among the others, so that they see the beginning and the end.
            if number * plan.browsers % plan.people < plan.browsers:
                someone = witness.Witness(
                    number, plan.url, patience, browser, plan.door
                )
                people.append(someone)
            else:
                people.append(Person(number, plan.url, patience, plan.door))
        await train_alone(plan, alone)
        for _ in range(plan.rounds):
            rounds.append(await come(plan, people))
        await train_alone(plan, alone)
    return Lesson(plan, alone, rounds)


async def train_alone(plan: Plan, record: Record) -> None:
    """The same run, some times, of a person who is alone."""
    person = Person(-1, plan.url, patience=120.0)
    person.habit = "waits"
    for _ in range(plan.alone):
        await person.visit(record, asyncio.Event())


async def come(plan: Plan, people: "list[Person | Witness]") -> tuple[Record, Meter]:
    """One round: all come, one after the other, and leave."""
    record, others_left = Record(), asyncio.Event()
    pause = plan.arrival_seconds / max(1, len(people) - 1)
    async with Meter(plan.pid) as meter, asyncio.TaskGroup() as group:
        stay, return_later = [], []
        for person in people:
            task = group.create_task(person.visit(record, others_left))
            (return_later if person.habit == "leaves" else stay).append(task)
            await asyncio.sleep(pause)
        await asyncio.wait(stay)
        others_left.set()
    await asyncio.sleep(plan.rest_seconds)
    meter.after = meter.memory()
    return record, meter


@asynccontextmanager
async def chromium() -> AsyncIterator["Browser"]:
    """One real browser, in which each witness is a person of their own."""
    assert CHROMIUM, "There is no Chromium on this machine; browsers must be 0."
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()
