"""The room: the class that is open on this server, who is in it, what it lets in.

What it decides by stays in memory, so that neither the queue nor a hundred people who
look wait for a database; each change is written down as it is made. There is one room a
server, as there is one writer.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from core.classroom import names
from core.classroom.rules import NONE, RUN, Rules
from core.errors import ExplainedError
from core.jobs.job import Job
from core.jobs.limits import Gate, spoken
from core.store.classes import Class, Classes, Member
from core.store.codec import StoreError
from core.store.visitors import as_code

logger = logging.getLogger(__name__)

WRONG = "No class has that code. Check it against the one your teacher shows."
CLOSED = "That class is closed. Ask your teacher to open it."
FULL = "That class is full. Ask your teacher to make room for more."
NOT_IN = "You are not in a class that is open. Join it first."
GONE = "That class is no longer there: another teacher may have deleted it."
# Ends these runs of an owner and lets go of them, as Engine.forget does.
Forget = Callable[[str, list[str]], object]
OUTSIDE = "everybody outside"  # as whom those count together who have not joined


@dataclass(frozen=True)
class Teacher:
    """The proof that somebody has signed in; nothing but a sign-in makes one."""

    visitor: str
    name: str  # that is written down with what they do


class Room(Gate):
    """Safe to use from threads. No student calls what takes a Teacher."""

    def __init__(self, classes: Classes) -> None:
        """As it was when the server stopped; empty where that can't be read."""
        self._classes = classes
        self._lock = threading.RLock()  # for the rest
        self._open: Class | None = None
        self._members: dict[str, Member] = {}  # of that, by visitor, as they came
        self._teachers: set[str] = set()  # visitors that no rule holds for
        try:
            found = next((each for each in classes.all() if each.is_open), None)
            if found:
                self._take(found)
        except StoreError as error:
            logger.warning("no class is open: %s", error)

    def _take(self, found: Class) -> None:
        """Have this class open, with those who are in it. Raises StoreError."""
        members = {each.visitor: each for each in self._classes.members(found.id)}
        self._open, self._members = found, members

    # To look at

    @property
    def open(self) -> Class | None:
        """The class that is open; None: there is none, and no rule holds."""
        return self._open

    @property
    def rules(self) -> Rules:
        """Those that hold now; without a class, none."""
        return self._open.rules if self._open else NONE

    def rules_for(self, visitor: str) -> Rules:
        """Those that hold for this person: for a teacher, none."""
        return NONE if visitor in self._teachers else self.rules

    def member(self, visitor: str) -> Member | None:
        """Who the visitor is in the class that is open; None: not in it."""
        return self._members.get(visitor)

    def is_teacher(self, visitor: str) -> bool:
        """Whether they have signed in."""
        return visitor in self._teachers

    def members(self) -> list[Member]:
        """Who is in the class that is open, as they came."""
        with self._lock:
            return list(self._members.values())

    # What students do

    def join(self, code: str, visitor: str) -> Member:
        """Be in the class of this code, by a friendly name; whoever is in stays so.

        Raises ExplainedError: a wrong code, a class that is closed or full.
        """
        typed = as_code(code)
        with self._lock:
            if self._open is not None and self._open.code == typed:
                return self._members.get(visitor) or self._add(self._open, visitor)
        raise ExplainedError(self.why_not(typed))

    def _add(self, opened: Class, visitor: str) -> Member:
        if opened.joined >= opened.size:
            raise ExplainedError(FULL)
        name = names.friendly([each.name for each in self._members.values()])
        member = Member(opened.id, visitor, name, time.time(), runs=0)
        self._open = replace(opened, joined=opened.joined + 1)
        self._members[visitor] = member
        self._classes.join(member, self._open.joined)
        return member

    def why_not(self, code: str) -> str:
        """Why nobody can join with that code, which is not that of the open class."""
        typed = as_code(code)
        known = any(each.code == typed for each in self._classes.all())
        return CLOSED if known else WRONG

    def rename(self, visitor: str, name: str) -> Member:
        """Have the name that the visitor chose. Raises ExplainedError, see `names`."""
        with self._lock:
            if (member := self._members.get(visitor)) is None:
                raise ExplainedError(NOT_IN)
            others = [each.name for each in self._members.values() if each != member]
            return self._change_member(member, name=names.chosen(name, others))

    def forget(self, visitor: str) -> None:
        """The visitor's data is deleted; the seat in the class stays taken."""
        with self._lock:
            self._members.pop(visitor, None)

    def _change_member(self, member: Member, **values: Any) -> Member:
        self._classes.change_member(member, **values)
        changed = self._members[member.visitor] = replace(member, **values)
        return changed

    # What the queue asks: see core.jobs.limits.Gate

    @property
    def paused(self) -> bool:
        return self._open is not None and self._open.is_paused

    def person(self, owner: str) -> str:
        """All who have not joined are one, so that a fresh cookie is of no use."""
        if not owner or self._open is None or owner in self._teachers:
            return owner
        return owner if owner in self._members else OUTSIDE

    def seconds(self, owner: str) -> float | None:
        return self.rules_for(owner).seconds if owner else None

    def admit(self, job: Job, expected: float | None) -> None:
        """Refuse what the rules refuse; else count it, as the last check of all."""
        with self._lock:
            if self._open is None or job.owner in self._teachers:
                return
            rules: Rules = self._open.rules
            rules.check(job.address, job.arguments)
            if rules.seconds and expected is not None and expected > rules.seconds:
                raise ExplainedError(
                    f"This would take about {spoken(expected)} here, and in this class "
                    f"a job may take {spoken(rules.seconds)}. Choose less to do, such "
                    "as fewer epochs."
                )
            if job.address == RUN:
                self._count(job.owner, rules.runs)

    def _count(self, owner: str, most: int | None) -> None:
        """One more run of somebody; ExplainedError where they have had them all."""
        assert self._open is not None
        member = self._members.get(owner)
        begun = member.runs if member else self._open.outside
        if most is not None and begun >= most:
            whose = "You have" if member else "Those who have not joined have"
            raise ExplainedError(
                f"{whose} begun {begun} {'run' if begun == 1 else 'runs'}, and in this "
                "class nobody may begin more. Look at those you have."
            )
        if member:
            self._change_member(member, runs=begun + 1)
        else:
            self._open = replace(self._open, outside=begun + 1)
            self._classes.count_outside(self._open.id, begun + 1)

    # What teachers do. Each act is written down; StoreError where it can't be done now

    def welcome(self, teacher: Teacher) -> None:
        """No rule holds for this visitor, from signing in until signing out."""
        self._teachers.add(teacher.visitor)

    def dismiss(self, teacher: Teacher) -> None:
        """The rules hold for this visitor again."""
        self._teachers.discard(teacher.visitor)

    def create(self, teacher: Teacher, name: str, size: int, rules: Rules) -> Class:
        """A new class, which is closed. ExplainedError for a name or size that is off.

        Of its name the same is asked as of a person's.
        """
        if not 1 <= size <= 500:
            raise ExplainedError("A class has room for 1 to 500.")
        made = self._classes.create(
            names.chosen(name, (), names.LONGEST_OF_CLASS), size, rules
        )
        self._tell(teacher, made.id, f"made the class {made.name}, for {size}")
        return made

    def start(self, teacher: Teacher, class_id: str) -> None:
        """Open a class; one that was open is closed."""
        with self._lock:
            found = self._get(class_id)
            if not found.is_open:
                self._classes.change(class_id, is_open=True)
                self._take(replace(found, is_open=True))
                self._tell(teacher, class_id, "opened the class")

    def close(self, teacher: Teacher, class_id: str) -> None:
        """Nobody is in it until it is opened again, and what was paused goes on."""
        with self._lock:
            self._change(class_id, is_open=False, is_paused=False)
            self._leave(class_id)
        self._tell(teacher, class_id, "closed the class")

    def _leave(self, class_id: str) -> None:
        if self._open and self._open.id == class_id:
            self._open, self._members = None, {}

    def pause(self, teacher: Teacher, paused: bool = True) -> None:
        """Nothing of the queue gets its turn until it is resumed; what runs goes on."""
        with self._lock:
            if self._open is None:
                raise ExplainedError("No class is open. Open one, then pause it.")
            class_id = self._open.id
            self._change(class_id, is_paused=paused)
        self._tell(teacher, class_id, f"{'paused' if paused else 'resumed'} the queue")

    def change(
        self, teacher: Teacher, class_id: str, *, told: str = "", **values: Any
    ) -> None:
        """Another name, size, rules, or date from which on its data is deleted.

        The rules hold for what is submitted from now on. `told` is written down.
        """
        self._change(class_id, **values)
        every = ", ".join(f"{name} to {value}" for name, value in values.items())
        self._tell(teacher, class_id, told or f"changed {every}")

    def note(self, teacher: Teacher, what: str) -> None:
        """Write down what a teacher did by other hands: to the queue, or to a run."""
        self._tell(teacher, self._open.id if self._open else None, what)

    def _change(self, class_id: str, **values: Any) -> None:
        with self._lock:
            self._get(class_id)
            self._classes.change(class_id, **values)
            if self._open and self._open.id == class_id:
                self._open = replace(self._open, **values)

    def delete(self, teacher: Teacher, class_id: str, forget: Forget) -> None:
        """Delete a class with its members and their runs in it."""
        self._delete(self._get(class_id), forget, teacher.name)

    def delete_ended(self, forget: Forget) -> None:
        """Delete the classes whose date has come, as their teachers said."""
        for each in self._classes.all():
            if each.ends is not None and each.ends < time.time():
                self._delete(each, forget, "The app")

    def _delete(self, gone: Class, forget: Forget, who: str) -> None:
        with self._lock:
            self._leave(gone.id)  # so that no run is added to it
        theirs: dict[str, list[str]] = {}
        for run_id, owner in self._classes.runs(gone.id).items():
            theirs.setdefault(owner, []).append(run_id)
        self._forget(theirs, forget)
        self._classes.delete(gone.id)
        self._forget(theirs, forget)  # what somebody has looked at meanwhile
        count = sum(map(len, theirs.values()))
        self._classes.write_down(who, f"deleted the class {gone.name}, {count} runs")

    def _forget(self, runs: dict[str, list[str]], forget: Forget) -> None:
        for owner, run_ids in runs.items():
            forget(owner, run_ids)

    def _get(self, class_id: str) -> Class:
        for each in self._classes.all():
            if each.id == class_id:
                return each
        raise ExplainedError(GONE)

    def _tell(self, teacher: Teacher, class_id: str | None, what: str) -> None:
        self._classes.write_down(teacher.name, what, class_id)
