"""An address in the code, "core.move.transfers:measure": a module and a name in it.

Jobs are sent to workers by it, and pages show code by it, since neither the server nor
a page may import what it names. A method is "core.mistakes.search:Index.nearest".
"""

import importlib
import inspect
from operator import attrgetter
from typing import Any

from core.errors import CancelledError, explain
from core.jobs.job import Outcome
from core.watch import UNWATCHED, Watch


def resolve(address: str) -> Any:
    """What stands at the address; imports its module.

    Raises ImportError where there is no such module, AttributeError for no such name.
    """
    module, _, name = address.partition(":")
    return attrgetter(name)(importlib.import_module(module))


def outcome_of(
    address: str, arguments: tuple[Any, ...], watch: Watch = UNWATCHED
) -> Outcome:
    """Call the function at the address; whatever happens, nothing is raised.

    It gets `arguments`, and `watch` where it has a parameter of that name.
    """
    try:
        watch.check()
        function = resolve(address)
        watched = "watch" in inspect.signature(function).parameters
        value = function(*arguments, **({"watch": watch} if watched else {}))
        return Outcome("finished", value)
    except CancelledError:
        return Outcome("cancelled")
    except Exception as error:
        return Outcome("failed", message=explain(error, arguments))
