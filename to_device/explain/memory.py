"""The numbers in an out-of-memory message: what each one is, and what they mean."""

import math
import re
from typing import NamedTuple

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
UNITS |= {"KB": UNITS["KiB"], "MB": UNITS["MiB"], "GB": UNITS["GiB"]}
SIZE = r"\b(\d{1,9}(?:\.\d{1,9})?) (bytes|[KMG]i?B)\b"
# What a person says of the GPU's memory: "with 8gb", "24 GB of VRAM".
GPU = r"(?:gpus?|vram|(?:graphics|video) cards?|[rg]tx ?\d{3,4}\w{0,3}|[tvalh]\d{1,3})"
TOLD = re.compile(
    rf"\b{GPU}\b[ (:=,]{{1,3}}(?:(?:with|has|only|is|of) ){{0,3}}(\d{{1,3}}) ?gi?b\b"
    rf"|\b(\d{{1,3}}) ?gi?b (?:of )?(?:nvidia )?(?:{GPU}|gpu memory|video memory)\b",
    re.IGNORECASE,
)


class Number(NamedTuple):
    """A number of torch's message."""

    name: str
    pattern: str  # one size, in any of torch's wordings
    meaning: str


# The one glossary of these numbers, in the order in which an answer tells them.
GLOSSARY = (
    Number("asked", rf"Tried to allocate {SIZE}", "what this operation asked for"),
    Number(
        "total",
        rf"total capaci?ty of {SIZE}|{SIZE} total capacity",
        "the GPU's whole memory",
    ),
    Number(
        "free",
        rf"of which {SIZE} is free|\b{SIZE} free\b",
        "what no program uses",
    ),
    Number(
        "allocated",
        rf"{SIZE} is allocated by PyTorch|{SIZE} already allocated"
        rf"|MPS allocated: {SIZE}|Of the allocated memory {SIZE}",
        "what this process's tensors use",
    ),
    Number(
        "unused",
        # Before torch 1.4, "cached" didn't count what tensors use.
        rf"{SIZE} is reserved by PyTorch but unallocated|{SIZE} cached\b",
        "what PyTorch keeps for later tensors, in pieces",
    ),
    Number(
        "reserved",
        rf"{SIZE} reserved in total by PyTorch",
        "what PyTorch has taken from the driver for this process",
    ),
    Number(
        "process",
        rf"this process has {SIZE} memory in use",
        "what this process uses, with CUDA's own context",
    ),
    Number(
        "allowed",
        rf"{SIZE} allowed;",
        "what this process may use, by its per_process_memory_fraction",
    ),
    Number("limit", rf"max allowed: {SIZE}", "what PyTorch may use of a Mac's memory"),
    Number("metal", rf"other allocations: {SIZE}", "what Metal uses for this process"),
    Number(
        "others",
        rf"Process \d{{1,9}} has {SIZE} memory in use",
        "what other processes and CUDA itself use",
    ),
)


def told(text: str) -> float:
    """The GPU's memory as a person tells it, in bytes; infinite if nobody does."""
    sizes = [float(one or other) for one, other in TOLD.findall(text)]
    return max(sizes, default=math.inf) * UNITS["GiB"]


def numbers(message: str) -> dict[str, float]:
    """The sizes of a message in bytes, by their name in the glossary."""
    found: dict[str, float] = {}
    processes: list[float] = []
    for number in GLOSSARY:
        matches = re.finditer(number.pattern, message)
        sizes = []
        for match in matches:
            size, unit = filter(None, match.groups())
            sizes.append(float(size) * UNITS[unit])
        if number.name == "others":
            processes = sizes
        elif sizes:
            found[number.name] = sizes[0]
    # In a container, torch doesn't know its own process among those of the GPU.
    kept = found.get("allocated", 0) + found.get("unused", 0)
    own_sizes = [size for size in processes if size >= kept]
    is_listed = sum(processes) + kept > found.get("total", math.inf)
    if "process" not in found and is_listed and own_sizes:
        found["process"] = min(own_sizes)
        processes.remove(found["process"])
    if processes:
        found["others"] = sum(processes)
    if "unused" not in found and {"reserved", "allocated"} <= found.keys():
        found["unused"] = max(0, found["reserved"] - found["allocated"])
    if "others" not in found and {"total", "free"} <= found.keys():
        own = found.get("process", found.get("reserved"))
        if own is None and {"allocated", "unused"} <= found.keys():
            own = found["allocated"] + found["unused"]
        if own is not None:
            # A process needs some memory beside its tensors: CUDA's context.
            found["others"] = max(0, found["total"] - found["free"] - own)
    return found


def shown(size: float) -> str:
    """As torch writes it: "1.50 GiB", "20.00 MiB", "0 bytes"."""
    unit = next((u for u in ("GiB", "MiB", "KiB") if size >= UNITS[u]), "bytes")
    digits = 0 if unit == "bytes" else 2
    return f"{size / UNITS[unit]:.{digits}f} {unit}"


def fragmented(found: dict[str, float]) -> bool:
    """Whether PyTorch keeps much unused memory, and enough for the request.

    It always keeps a little, so it is much if it is a tenth of the GPU's.
    """
    least = max(found.get("asked", math.inf), found.get("total", 0) / 10)
    return found.get("unused", 0) >= least


def taken(found: dict[str, float]) -> bool:
    """Whether others use more of the GPU than this process, and so are in its way.

    Then a smaller batch hardly helps. They aren't if enough is free.
    """
    if found.get("free", 0) >= found.get("asked", math.inf):
        return False
    own = found.get("process", found.get("reserved", found.get("allocated")))
    return own is not None and not limited(found) and found.get("others", 0) > own


def limited(found: dict[str, float]) -> bool:
    """Whether the request would exceed the process's own limit.

    As PyTorch's allocator does, it counts what PyTorch has reserved, without CUDA's
    context.
    """
    kept = found.get("allocated", 0) + found.get("unused", 0)
    reserved = found.get("reserved", kept)
    return reserved + found.get("asked", 0) > found.get("allowed", math.inf)


def too_large(found: dict[str, float]) -> bool:
    """Whether the request alone is larger than the GPU."""
    return found.get("asked", 0) > found.get("total", math.inf)


def filled(found: dict[str, float]) -> bool:
    """Whether this process's tensors are at least half of what it may use."""
    whole = found.get("limit", found.get("allowed", found.get("total", math.inf)))
    return 2 * found.get("allocated", 0) >= whole


def spared(found: dict[str, float]) -> bool:
    """Whether the request would fit beside what this process holds."""
    kept = found.get(
        "process", found.get("allocated", math.inf) + found.get("unused", 0)
    )
    return kept + found.get("asked", math.inf) <= found.get("total", 0)


def explained(found: dict[str, float]) -> str:
    """The numbers with their meaning, and what they say together; "" without any."""
    if "asked" not in found:
        return ""
    lines = [
        f"- {shown(found[number.name])} {number.name}: {number.meaning}"
        for number in GLOSSARY
        if number.name in found
    ]
    if too_large(found):
        lines.append("\nSo the request alone is larger than the GPU.")
    elif fragmented(found):
        lines.append("\nSo there is enough unused memory, but in pieces.")
    elif limited(found):
        lines.append("\nSo this process has used up what it may use.")
    elif taken(found):
        lines.append("\nSo most of the memory belongs to other programs.")
    elif filled(found):
        lines.append("\nSo the tensors of this process fill the memory.")
    elif "limit" in found and found.get("metal", 0) > found.get("allocated", 0):
        lines.append(
            "\nSo Metal's buffers for this process, not its tensors, are most of it."
        )
    elif spared(found):
        lines.append(
            "\nSo this process's tensors leave enough room: other programs have the"
            " memory, or the driver has refused it for another reason."
        )
    return "\n".join(lines)
