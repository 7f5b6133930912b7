"""What differs between two texts, line by line."""

import difflib


def changes(before: str, after: str) -> str:
    """The lines that differ, with + or -, and two lines around each; "" without any.

    For texts with the same lines again and again, this can take minutes.
    """
    if before == after:
        return ""
    old, new = before.splitlines(), after.splitlines()
    lines = [*difflib.unified_diff(old, new, n=2, lineterm="")]
    return "\n".join(line for line in lines[2:] if not line.startswith("@@"))


def changed_lines(before: str, after: str) -> set[int]:
    """The numbers, from 1, of the lines of `after` that aren't in `before`."""
    matcher = difflib.SequenceMatcher(
        None, before.splitlines(), after.splitlines(), autojunk=False
    )
    return {
        line + 1
        for kind, _, _, start, end in matcher.get_opcodes()
        if kind != "equal"
        for line in range(start, end)
    }
