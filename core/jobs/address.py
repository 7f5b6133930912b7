"""An address in the code, "core.move.transfers:measure": a module and a name in it.

Jobs are sent to workers by it, and pages show code by it, since neither the server nor
a page may import what it names. A method is "core.mistakes.search:Index.nearest".
"""

import importlib
from operator import attrgetter
from typing import Any


def resolve(address: str) -> Any:
    """What stands at the address; imports its module.

    Raises ImportError where there is no such module, AttributeError for no such name.
    """
    module, _, name = address.partition(":")
    return attrgetter(name)(importlib.import_module(module))
