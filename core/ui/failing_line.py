"""The line of a mistake that raises its exception: guessed before it is run, marked."""

import ast

from core.mistakes.catalogue import Failure, Mistake
from core.ui import answers, guess
from core.ui.source import body, marked


def statements(code: str) -> list[range]:
    """The lines of each simple statement, from 1."""
    return [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]


def arrowed(code: str, failure: Failure | None) -> str:
    """The code, with an arrow at the statement that raised the exception."""
    if failure is None or failure.line is None:
        return code
    return marked(code, _statement(code, failure.line))


def _statement(code: str, line: int) -> range:
    """The lines of the statement that this one begins, or is in."""
    found = (each for each in statements(code) if line in each)
    return next(found, range(line, line + 1))


def ask(mistake: Mistake, told: bool) -> int | None:
    """Which line the learner takes for the one that raises it, as long as it's open."""
    key = f"line_{mistake.slug}"
    if told:
        return guess.made(key)
    lines = sorted(each.start for each in statements(body(mistake.address("broken"))))
    if len(lines) < 2:
        return None
    question = "Your guess: which line raises it?"
    look = {"horizontal": True, "label_visibility": "collapsed"}  # the title asks it
    return answers.radio(question, lines, key, **look)


def judge(mistake: Mistake, failure: Failure, guessed: int | None) -> None:
    """The line that did, beside the guess; nothing where either is not known."""
    if guessed is None or failure.line is None:
        return
    right = _statement(body(mistake.address("broken")), failure.line).start
    guess.judge(f"Line {right} raised it.", guessed, right, say="line {}".format)
