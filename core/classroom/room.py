"""The open class, its members, and which jobs it admits.

A server has one Room. It keeps the open class, the class's rules, and its members in
memory, so that neither the queue nor a hundred open pages wait for the database. Each
change is also stored in the database.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from core.classroom import names
from core.classroom.rules import NONE, Rules
from core.jobs.admission import Gate
from core.jobs.estimates import longer, spoken
from core.jobs.job import Job
from core.registry import RUN
from core.store.classes import Classes
from core.store.codec import StoreError
from core.store.tables import Class, Member
from core.store.visitors import as_code
from core.watch import Control
from to_device.errors import ExplainedError
from to_device.words import Words

logger = logging.getLogger(__name__)
words = Words(__file__)

EXPIRY_SECONDS = 3600.0  # between two searches for expired classes
SURE_SECONDS = 900.0  # from when an expired class is found until it is deleted
SEEDS = 10_000  # a member's own seed is below this number
OUTSIDE = "everybody outside"  # the queue's name for all people who haven't joined
Forget = Callable[[str, list[str]], object]  # Engine.forget: takes an owner, run ids


@dataclass(frozen=True)
class Teacher:
    """Proof that a visitor has signed in; only a sign-in makes a Teacher."""

    visitor: str
    name: str  # shown in the teacher's log


class Room(Gate):
    """The open class and its rules for jobs; safe to use from threads.

    Only a teacher can call methods that take a Teacher.
    """

    def __init__(self, classes: Classes) -> None:
        """Restore the class that was open when the server stopped, or log why not."""
        self._classes = classes
        self._lock = threading.RLock()  # guards the attributes below
        # The class that the board shows: the open class, or else the last open class
        self.on_board: Class | None = None
        # The members of that class by visitor, in the order in which they joined
        self._members: dict[str, Member] = {}
        # By visitor: the class's rules, and a copy that fixes the member's own seed
        self._own_rules: dict[str, tuple[Rules, Rules]] = {}
        # By visitor: why the latest run that they wanted to start is too long
        self._refused: dict[str, str] = {}
        # The time.time when that class was opened; 0 after a restart, which forgets it
        self._opened = 0.0
        # Whether a member's run on images has finished in the open class
        self.has_results = False
        # By visitor who is exempt from the rules: the time.time when this ends
        self._teachers: dict[str, float] = {}
        try:
            for classroom in classes.all():
                if classroom.is_open:
                    self._enter(classroom)
        except StoreError as error:
            logger.warning("could not read the open class: %s", error)

    def _enter(self, classroom: Class) -> None:
        members = self._classes.members(classroom.id)
        self.on_board, self._own_rules, self._refused = classroom, {}, {}
        self._members = {member.visitor: member for member in members}
        # The database writes an accuracy after each epoch, so the status counts, too.
        self.has_results = any(
            run.status == "finished" and run.accuracy is not None
            for run in self._classes.runs(classroom.id)
        )

    @property
    def open(self) -> Class | None:
        classroom = self.on_board
        return classroom if classroom and classroom.is_open else None

    @property
    def revealed(self) -> str:
        """The key of the guess that the projector shows; "" if it shows none."""
        return (self.open.revealed if self.open else None) or ""

    @property
    def told(self) -> frozenset[str]:
        """The keys of the guesses whose result the projector has shown."""
        return frozenset(((self.open.told if self.open else None) or "").split())

    @property
    def with_result(self) -> bool:
        """Whether the projector also shows what was measured."""
        return self.revealed in self.told

    def shown(self, class_id: str) -> Mapping[str, Any]:
        """The answers and the figure of each result that a class has seen, by guess.

        They stay what they were, whatever somebody measures later.
        """
        on_board = self.on_board
        is_there = on_board is not None and on_board.id == class_id
        classroom = on_board if is_there else self._get(class_id)
        return classroom.shown or {} if classroom else {}

    def rules_for(self, visitor: str) -> Rules:
        """The open class's rules; NONE for a teacher, or if no class is open."""
        classroom = self.open
        if classroom is None or self.is_teacher(visitor):
            return NONE
        rules: Rules = classroom.rules
        if visitor not in self._members:
            return rules
        whole, own = self._own_rules.get(visitor, (None, NONE))
        if whole is not rules:
            # The seed stays the same whenever the member comes back.
            seed = crc32(f"{classroom.id} {visitor}".encode()) % SEEDS
            own = rules.for_member(seed)
            self._own_rules[visitor] = rules, own
        return own

    def member(self, visitor: str) -> Member | None:
        """The visitor as a member of the open class; None if they aren't a member."""
        return self._members.get(visitor) if self.open else None

    def is_teacher(self, visitor: str) -> bool:
        return self._teachers.get(visitor, 0.0) > time.time()

    def may_see(self, visitor: str) -> bool:
        """Whether a class is open and the visitor is a member or a teacher."""
        return self.open is not None and self.board_for(visitor) is not None

    def members(self, class_id: str = "") -> list[Member]:
        """Members of a class, by default of the class on the board."""
        with self._lock:
            # Somebody who has just joined may not be in the database yet.
            if not class_id or (self.on_board and self.on_board.id == class_id):
                return list(self._members.values())
        return self._classes.members(class_id)

    def names(self, class_id: str) -> dict[str, str]:
        """The names of a class's members, by visitor."""
        return {member.visitor: member.name for member in self.members(class_id)}

    def board_for(self, visitor: str) -> Class | None:
        """The class on the board; None unless the visitor is a member or a teacher."""
        is_in = visitor in self._members or self.is_teacher(visitor)
        return self.on_board if is_in else None

    def join(self, code: str, visitor: str) -> Member:
        """Join the class with this code; the member gets a made-up, friendly name.

        A run that obeys the class's rules and hasn't ended yet becomes the class's, for
        those who train first and then join.

        Raises ExplainedError if the code is wrong, or the class is closed or full.
        """
        with self._lock:
            classroom = self.open
            if classroom is not None and classroom.code == as_code(code):
                if member := self._members.get(visitor):
                    return member
                if classroom.joined >= classroom.size:
                    raise ExplainedError(words("room.full"))
                name = names.friendly(self.names(classroom.id).values())
                member = Member(classroom.id, visitor, name, time.time(), runs=0)
                self.on_board = replace(classroom, joined=classroom.joined + 1)
                self._members[visitor] = member
                self._classes.join(member, self.on_board.joined, self._opened)
                return member
        # This reads the database, so it must not hold the lock.
        raise ExplainedError(self.why_not(code))

    def why_not(self, code: str) -> str:
        """A sentence on why this code, which isn't the open class's, lets nobody in."""
        if not as_code(code):
            return "Type the code that your teacher gave you."
        codes = [classroom.code for classroom in self._classes.all()]
        is_closed = as_code(code) in codes
        return (
            words("room.closed")
            if is_closed
            else "No class has that code. Compare it with the one that your "
            "teacher gave you."
        )

    def rename(self, visitor: str, name: str) -> Member:
        """Rename a member. Raises ExplainedError for a bad name or for a nonmember."""
        if (member := self.member(visitor)) is None:
            raise ExplainedError(words("room.not_in"))
        return self._rename(member, name)

    def _rename(self, member: Member, name: str) -> Member:
        with self._lock:
            others = self.names(member.class_id)
            others.pop(member.visitor, None)
            name = names.tidy(name, others.values())
            return self._change_member(member, name=name)

    def forget(self, visitor: str) -> None:
        """Forget a visitor whose data is deleted; the seat in the class stays taken."""
        with self._lock:
            self._members.pop(visitor, None)

    def note_end(self, job: Job) -> None:
        """Note that a job has ended: a finished run answers what the class guesses."""
        is_run = job.address == RUN and job.status == "finished"
        if is_run and job.owner in self._members and job.arguments[0].has_images:
            self.has_results = True

    def _change_member(self, member: Member, **values: Any) -> Member:
        self._classes.change_member(member, **values)
        if self.on_board is None or self.on_board.id != member.class_id:
            return replace(member, **values)
        # A page may have got `member` before the member's newest run was counted.
        newest = self._members.get(member.visitor, member)
        changed = self._members[member.visitor] = replace(newest, **values)
        return changed

    # Methods of core.jobs.admission.Gate, which the queue calls

    @property
    def paused(self) -> bool:
        return self.open is not None and self.open.is_paused

    def person(self, owner: str) -> str:
        """The name under which this owner takes turns in the queue.

        All people who haven't joined share a name, so a new cookie gives
        nobody more turns.
        """
        if not owner or self.open is None or self.is_teacher(owner):
            return owner
        return owner if owner in self._members else OUTSIDE

    def seconds(self, owner: str) -> float | None:
        return self.rules_for(owner).seconds if owner else None

    def admit(self, job: Job, expected: float | None) -> None:
        """Raise ExplainedError if a job breaks a rule, else count it if it is a run.

        `expected` is the estimate of the job's seconds, if there is one. No other check
        comes after this one, so every counted run is queued.
        """
        with self._lock:
            classroom = self.open
            if classroom is None or self.is_teacher(job.owner):
                return
            rules = self.rules_for(job.owner)
            rules.check(job.address, job.arguments)
            if rules.seconds and expected is not None and expected > rules.seconds:
                takes, most = longer(expected, rules.seconds), spoken(rules.seconds)
                if job.address == RUN and job.owner in self._members:
                    self._refused[job.owner] = (
                        f"The run would take {takes}, but this class allows at most "
                        f"{most} per job."
                    )
                raise ExplainedError(
                    f"This job would take {takes} here, but this class allows at most "
                    f"{most} per job. Choose a smaller job, such as one with fewer "
                    "epochs, or ask your teacher for more time."
                )
            if job.address != RUN:
                return
            member = self._members.get(job.owner)
            count = member.runs if member else classroom.outside
            if rules.runs is not None and count >= rules.runs:
                whose = "You have" if member else "People outside the class have"
                runs = f"{count} {'run' if count == 1 else 'runs'}"
                raise ExplainedError(
                    f"{whose} started {runs}, the most that this class allows. "
                    "You can still look at your earlier runs."
                )
            self._refused.pop(job.owner, None)
            if member:
                self._change_member(member, runs=count + 1)
            else:
                self.on_board = replace(classroom, outside=count + 1)
                self._classes.count_outside(classroom.id, count + 1)

    def refused(self) -> dict[str, str]:
        """Members whose latest run was too long to be started, and why, for a teacher.

        Nobody's after the rules have changed.
        """
        with self._lock:
            return dict(self._refused)

    def steer(self, owner: str, control: Control) -> None:
        rate, rules = control.learning_rate, self.rules_for(owner)
        if rate is not None and (why := rules.refusal("learning_rate", rate)):
            raise ExplainedError(why)

    # Methods for teachers. Changes are logged, and may raise StoreError

    def welcome(self, teacher: Teacher, until: float) -> None:
        """Exempt a signed-in teacher from the rules until a time.time, or `dismiss`."""
        self._teachers[teacher.visitor] = until

    def dismiss(self, teacher: Teacher) -> None:
        self._teachers.pop(teacher.visitor, None)

    def create(self, teacher: Teacher, name: str, size: int, rules: Rules) -> Class:
        """A new class, still closed. Raises ExplainedError for a bad name."""
        name = names.tidy(name, longest=names.LONGEST_OF_CLASS)
        classroom = self._classes.create(name, size, rules)
        act = f"made the class {classroom.name} with {size} seats"
        self.note(teacher, act, classroom.id)
        return classroom

    def start(self, teacher: Teacher, class_id: str) -> None:
        """Open a class, and close the class that was open."""
        with self._lock:
            classroom = self._get(class_id)
            if not classroom.is_open:
                self._classes.change(class_id, is_open=True)
                self._enter(replace(classroom, is_open=True))
                self._opened = time.time()
                self.note(teacher, "opened the class", class_id)

    def close(self, teacher: Teacher, class_id: str) -> None:
        # Without a guess, the projector shows the final board.
        values = {"is_open": False, "is_paused": False, "revealed": ""}
        if self._get(class_id).is_open:
            self.change(teacher, class_id, "closed the class", **values)

    def pause(self, teacher: Teacher, paused: bool = True) -> None:
        """Pause or resume the queue. A paused queue starts no jobs, but ends none."""
        if (classroom := self.open) is None:
            raise ExplainedError(
                "No class is open. Open one before you pause the queue."
            )
        act = f"{'paused' if paused else 'resumed'} the queue"
        if classroom.is_paused != paused:
            self.change(teacher, classroom.id, act, is_paused=paused)

    def change(self, teacher: Teacher, class_id: str, act: str, **values: Any) -> None:
        """Change a class's columns, and log `act`.

        New rules apply to later jobs, but a new limit of seconds to all.
        """
        with self._lock:
            self._refused = {} if "rules" in values else self._refused
        self._change(class_id, **values)
        self.note(teacher, act, class_id)

    def rename_for(self, teacher: Teacher, member: Member, name: str) -> None:
        """Rename a member. Raises ExplainedError if the name can't be used."""
        with self._lock:
            before = self.names(member.class_id).get(member.visitor, member.name)
            after = self._rename(member, name).name
        if after != before:
            self.note(teacher, f"renamed {before} to {after}", member.class_id)

    def remove(self, teacher: Teacher, member: Member) -> None:
        """Remove a member. Their runs stay, and their seat becomes free."""
        with self._lock:
            classroom = self._get(member.class_id)
            is_here = classroom is self.on_board
            if is_here and self._members.pop(member.visitor, None) is None:
                return  # the button was pressed twice
            self._change(classroom.id, joined=max(0, classroom.joined - 1))
            self._classes.remove(member)
        self.note(teacher, f"removed {member.name}", member.class_id)

    def reveal(
        self,
        teacher: Teacher,
        key: str,
        title: str,
        result: bool,
        right: tuple[Sequence[Any], str] | None = None,
    ) -> None:
        """Show the guesses with this key on the projector, with or without the result.

        The key "" hides them. `right` has the result: the answers and the figure.
        """
        with self._lock:
            if (classroom := self.open) is None:
                raise ExplainedError(
                    "No class is open. Open one before you show its guesses."
                )
            told = self.told | ({key} if result else set())
            if (key, told) == (self.revealed, self.told):
                return
            verb, noun = "showed" if key else "hid", "result" if result else "guesses"
            act, keys = f"{verb} the {noun} on {title}", " ".join(sorted(told))
            shown = {key: right} if result and right else {}
            shown |= classroom.shown or {}
            new = {"revealed": key, "told": keys, "shown": shown}
            self.change(teacher, classroom.id, act, **new)

    def note(self, teacher: Teacher, act: str, class_id: str | None = None) -> None:
        """Log an act of a teacher in a class, by default in the open class."""
        open_id = self.open.id if self.open else None
        self._classes.write_down(teacher.name, act, class_id or open_id)

    def delete(self, teacher: Teacher, class_id: str, forget: Forget) -> None:
        self._delete(self._get(class_id), forget, teacher.name)

    def delete_expired(self, forget: Forget, found: Collection[str] = ()) -> set[str]:
        """Delete the expired classes whose ids are in `found`; return those of others.

        Until a network has set it, a machine's clock may show a day years ahead. So a
        class has to be found expired twice.
        """
        expired = {
            classroom.id: classroom
            for classroom in self._classes.all()
            if classroom.ends is not None and classroom.ends < time.time()
        }
        for class_id in expired.keys() & found:
            self._delete(expired.pop(class_id), forget, "The app")
        return set(expired)

    async def watch_expiry(self, forget: Forget) -> None:
        """Look for expired classes now, in case the server was off, and then hourly."""
        found: set[str] = set()
        while True:
            try:
                found = await asyncio.to_thread(self.delete_expired, forget, found)
            except StoreError as error:
                logger.warning("could not delete expired classes: %s", error)
            await asyncio.sleep(SURE_SECONDS if found else EXPIRY_SECONDS)

    def _change(self, class_id: str, **values: Any) -> None:
        with self._lock:
            classroom = self._get(class_id)
            self._classes.change(class_id, **values)
            if classroom is self.on_board:
                self.on_board = replace(classroom, **values)

    def _delete(self, classroom: Class, forget: Forget, who: str) -> None:
        with self._lock:
            if self.on_board and self.on_board.id == classroom.id:
                self.on_board, self._members = None, {}  # so that nobody adds a run
        runs = self._classes.runs(classroom.id)
        for run in runs:
            forget(run.visitor or "", [run.id])
        self._classes.delete(classroom.id)
        for run in runs:  # again, since a page may have loaded runs meanwhile
            forget(run.visitor or "", [run.id])
        act = f"deleted the class {classroom.name} (runs: {len(runs)})"
        self._classes.write_down(who, act)

    def _get(self, class_id: str) -> Class:
        for classroom in (self.on_board, *self._classes.all()):
            if classroom and classroom.id == class_id:
                return classroom
        raise ExplainedError(
            "That class no longer exists. Another teacher may have deleted it."
        )
