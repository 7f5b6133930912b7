"""Errors whose message is a sentence for the person at the screen."""


class ExplainedError(Exception):
    """What went wrong and what to do about it, ready to be shown as it is."""


class CancelledError(Exception):
    """The person who started this run has cancelled it."""
