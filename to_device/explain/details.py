"""What a report says about its own case: names, shapes, the GPU, ranks, versions."""

import math
import pickletools
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from to_device import builds
from to_device.explain import memory, shapes
from to_device.explain.causes import knowledge
from to_device.explain.report import other_packages, without_code, without_libraries

MOST_SEARCHED = 60_000  # characters of a report in which details are looked for
# A device, but not a call such as `.cuda()`, which may be what was replaced.
DEVICE = re.compile(
    r"\b(?:cuda|mps|xpu|hip|sim)(?::\d{1,3})?\b(?!\(|\.\w)|\bcpu\b(?!\()", re.IGNORECASE
)
SHAPES = re.compile(
    r"(\d{1,9})\s?x\s?(\d{1,9}) and (\d{1,9})\s?x\s?(\d{1,9})"
    r"|m1: \[(\d{1,9}) x (\d{1,9})\], m2: \[(\d{1,9}) x (\d{1,9})\]"
)
CAPABILITY = re.compile(
    r"(?:CUDA )?capability (?:of |\(CC\) )?(?:sm_)?(\d{1,2})\.(\d)(?!\d)"
    r"|with CUDA capability sm_(\d{1,2})(\d)a?\b",
    re.IGNORECASE,
)
# A card, and its capability in the next cell of a table or in parentheses.
BESIDE = re.compile(
    r"\b((?:(?:RTX|GT[XS]?|Quadro|Tesla|GRID|NVS) ?)[A-Z]?\d{1,4}[A-Z]{0,3})"
    r" ?[|(\t] ?([235-9])\.([0-9])(?![\d.])",
    re.IGNORECASE,
)
NVIDIA = re.compile(
    r"(?i)\b(?:geforce|quadro|[rg]tx ?\d|nvidia corporation"
    r"|nvidia (?:gpu|card|graphics|titan|[a-z]{0,2}\d{2,4}))|\|\s+NVIDIA\b"
)
LACKED_NVIDIA = re.compile(
    r"(?i)\bnvidia\b(?!['\u2019-]|s? (?:driver|container|docker|toolkit|runtime))"
)
UNREAD = re.compile(r"Unsupported operand (\d{1,3})\b")
OPCODES = {ord(opcode.code) for opcode in pickletools.opcodes}
BUILT = re.compile(
    r"supports CUDA capabilities(?:[ ,]{1,3}(?:sm|compute)_\d{2,3}a?){1,30}"
    r"|cuda capability supported by this version of PyTorch\D{0,20}"
    r"\(\d{1,2}\.\d\) - \(\d{1,2}\.\d\)",
    re.IGNORECASE,
)
LISTED = re.compile(r"- (\d{1,2})\.(\d) which supports hardware CC")
# The newest CUDA that the driver knows, as nvidia-smi says, and the CUDA of the build.
DRIVER = re.compile(r"Driver Version: \S{1,20}\s{1,20}CUDA Version: (\d{1,2}\.\d)")
BUILD = re.compile(r"\+cu(\d{2})(\d)\b|(?:cudatoolkit|pytorch-cuda)=(\d{1,2})\.(\d)")
# The same in the lines of torch's collect_env: the driver's own number, and the build.
DRIVER_NUMBER = re.compile(r"Nvidia driver version: (\d{3})\.\d\d")
BUILT_WITH = re.compile(r"CUDA used to build PyTorch\s{0,9}: (\d{1,2})\.(\d)")
# The oldest driver for each CUDA before 11; see builds.toml for later ones.
OLD_DRIVERS = {(9, 0): 384, (9, 1): 390, (9, 2): 396, (10, 0): 410, (10, 1): 418}
# What an extension was compiled with, and what is there.
NEEDED = re.compile(
    r"built (?:for|with)[: ][\s>]{0,8}PyTorch (\d\.\d{1,2}\.\d)\+cu(\d{3})",
    re.IGNORECASE,
)
# The toolkit's version and torch's. torch 2.15 prints both after its message.
TOOLKITS = re.compile(
    r"(?:detected|Installed) CUDA version\b.{0,200}?(\d{1,2}\.\d).{0,80}?(\d{1,2}\.\d)",
    re.DOTALL,
)
INSTALLED = re.compile(
    r"\b(?:torch|pytorch)[\w() :=@'\"`]{0,30}?\b[v=]?(\d\.\d{1,2}\.\d)\b", re.IGNORECASE
)
TARGET_SIZES = re.compile(
    r"target size \(torch\.Size\(\[([\d, \n]{1,40})\]\)\)[^(]{0,60}"
    r"input size \(torch\.Size\(\[([\d, \n]{1,40})\]\)\)"
)
SIDES = re.compile(
    r"tensor a \((\d{2,6})\) must match the size of tensor b \((\d{2,6})\)"
    r" at non-singleton dimension [23]"
)
# What an interactive session answers on the next line.
ANSWERED = re.compile(
    r"(is_available\(\)\)?)[ \t]{0,9}\n\s{0,9}(?:Out ?\[\d{1,4}\]: )?(True|False)\b"
)
LARGER = re.compile(r"(?i)\blarger than 4 ?GB")
MOST_PIXELS = 32  # by which strides and pooling round a side, in most networks
TASKS = re.compile(r"(?i)n?tasks[-_]per[-_]node[ =]{1,3}[2-9]")
WARNED = re.compile(
    r"(?:Found GPU\d{1,2} )?\b([A-Z][\w .-]{2,50}?)"
    r" (?:which is of|with) (?i:cuda) capability"
)
LAUNCHED = re.compile(r"(?i)nproc[-_]per[-_]node[ =]{1,3}(?:[2-9]|\$|gpu|auto)")
SCALED_STEP = re.compile(r"^(\s*+)\S{0,40}scaler\.step\(\s?(\w{1,40})", re.MULTILINE)
# The end of a training loop; an engine that clears the gradients itself has none.
STEPPED = re.compile(
    r"\.backward\([^\n]{0,80}\n(?:[^\n]{0,120}\n){0,3}?"
    r"\s{0,40}\w{0,20}optim\w{0,20}\.step\("
)
ZEROED = re.compile(
    r"zero_grad|set_to_none|\.grad ?= ?None|(?i:deepspeed|colossal|accumulat)"
)
RANK = re.compile(r"GLOBAL_RANK: (\d{1,6}), MEMBER: \d{1,6}/(\d{1,6})")
# What somebody says that they don't have, use, or want, or know already: what they name
# then is no part of their case. "I don't have a problem with" says nothing of the kind.
_WORD = (
    r"(?!(?:but|and|so|because|since|while|when|that|which|if)\b)"
    r"(?:[^\s.,;:!?]|\.(?=\w)){1,60}"
)
LACKED = re.compile(
    r"(?i)\b(?:(?:i|we"
    r"|(?:my|our|the|this) (?:pc|laptop|computer|machine|server|system))"
    r" (?:(?:do|does)(?: not|n['’]?t) (?:really |even |actually )?"
    r"(?:have|own|want|need|use)"
    r"|(?:have|has|got|own)(?= no )|(?:am|are|['’]m) not (?:using|on|in))"
    r"|(?:i|we)['’](?:m|re) not (?:using|on|in)"
    r"|(?:i|we) (?:already )?(?:know|am aware|are aware) (?:about|of)) "
    r"(?!(?:no |any |a )?(?:problem|issue|trouble|idea|clue|error))"
    rf"({_WORD}(?: {_WORD}){{0,6}})"
)
# What a person says that they have done, know, or don't want, and settings in such a
# sentence.
TRIED = re.compile(
    r"(?i)\b(?:tried|already (?:set|use|have|did)|without (?:any )?luck|no luck"
    r"|no effect|increased|(?:did|does)(?:n['’]t| not) (?:help|work)"
    r"|(?:i|we) (?:set|add|enable|disable|pass|turn|use|call)\w{0,2}"
    r"\b[^\n]{0,120}\b(?:but|still|then)"
    r"|(?:i|we)(?: have|['’]ve)(?: also| already)? (?:set|added|enabled|given|passed)"
    r"|also (?:set|added|enabled|given|passed)"
    r"|(?:i|we) (?:already )?(?:know|am aware|are aware) (?:about|of)"
    r"|(?:i|we) (?:do not|don['’]?t) want|(?:i|we) would rather not"
    r"|after (?:(?:a|an|the|my|some|several|\d{1,3}) )?(?:warm-?ups?|reboots?|restarts?"
    r"|(?:re-?install|reboot|restart|updat|upgrad)ing))\b"
)
SETTING = re.compile(
    r"--[a-z][\w-]{2,40}|\b[A-Z][A-Z_]{5,40}\b|\b\w{3,40} ?= ?(?:\d{1,4}|True|False)\b"
)
ASSIGNED = re.compile(r"[\w.{}\[\], ]{1,60} = ")
CALL = re.compile(r"(?<=\.)\w{2,40}\(")  # a call of a method or of a module's function
MOST_OF_A_SENTENCE = 400  # characters
PIP = re.compile(r"(?m)^pip install(?= )")
PIP_OF_TORCH = re.compile(r'(?m)^pip install\b[^\n]* "?torch\b')
ARM = re.compile(r"aarch64|\bGB[23]00|\bGH200|\bGB10\b|DGX Spark", re.IGNORECASE)
RANKS = re.compile(
    r"(?:nproc[_-]per[_-]node|num[_-]processes|num[_-]gpus|ntasks-per-node)"
    r"[ =]{1,3}(\d{1,4})"
    r"|\bworld_?size\)?(?: is|:|=| of)? ?(\d{1,4})\b|\bdevices ?= ?(\d{1,4})\b",
    re.IGNORECASE,
)
WORKERS = re.compile(
    r"\(?try (\d{1,4}) which is the number of cpus"
    r"|max number of worker in current system is (\d{1,4})"
    r"|`?num_workers`? ?= ?(\d{1,4}) (?:should|would|to improve)",
    re.IGNORECASE,
)


def first(pattern: re.Pattern[str], text: str, default: str = "") -> str:
    """What the first match captures."""
    match = pattern.search(text)
    return next((g for g in match.groups() if g), default) if match else default


@dataclass(frozen=True)
class Details:
    """The details of a report that is `text`.

    Its error says `message`, and the learner's own line that failed is `line`.
    """

    text: str
    message: str
    line: str = ""

    @cached_property
    def searched(self) -> str:
        text = without_libraries(self.text[-MOST_SEARCHED:])
        text = ANSWERED.sub(r"\1 \2", text)
        return knowledge().translated(text)

    @cached_property
    def told(self) -> str:
        """What is no code: the person's own sentences, and what programs print."""
        return without_code(self.searched)

    @cached_property
    def lacked(self) -> list[tuple[int, int]]:
        """Where the person names what they don't have or don't want."""
        return [match.span(1) for match in LACKED.finditer(self.searched)]

    @cached_property
    def others(self) -> list[tuple[int, int]]:
        return other_packages(self.searched)

    def shows(self, pattern: str | re.Pattern[str]) -> bool:
        """Whether the report has this, not only among what the person lacks.

        Nor does the bare name of a package count that is only installed, too.
        """
        found, start = re.compile(pattern), 0
        while match := found.search(self.searched, start):
            lacked = (b for a, b in self.lacked if a <= match.start() < b)
            names = (
                b for a, b in self.others if a <= match.start() and match.end() <= b
            )
            start = next(chain(lacked, names), 0)
            if not start:
                return True
        return False

    @cached_property
    def attempts(self) -> str:
        """The sentences in which the person says what they have tried."""
        sentences = re.split(r"[.!?]\s|\n", self.searched)
        return "\n".join(
            sentence
            for sentence in sentences
            if len(sentence) <= MOST_OF_A_SENTENCE and TRIED.search(sentence)
        )

    @cached_property
    def tried(self) -> set[str]:
        """The settings that the person has tried, without spaces."""
        return {text.replace(" ", "") for text in SETTING.findall(self.attempts)}

    def has_called(self, name: str, method: str) -> bool:
        """Whether code assigns `name` from this method, as in `y = x.cpu()`."""
        methods = "to|cuda" if method in ("to", "cuda") else method
        done = rf"(?<![\w.]){re.escape(name)} ?= ?[^\n=]{{0,200}}\.(?:{methods})\("
        return re.search(done, self.searched) is not None

    @cached_property
    def held(self) -> dict[str, bool]:
        """What `holds` has found so far."""
        return {}

    @cached_property
    def devices(self) -> list[str]:
        return [
            *dict.fromkeys(device.lower() for device in DEVICE.findall(self.message))
        ]

    @cached_property
    def shapes(self) -> tuple[int, int, int, int] | None:
        """The two matrices of a product: rows and columns of each."""
        match = SHAPES.search(self.message)
        if match is None:
            return None
        a, b, c, d = (int(size) for size in match.groups() if size)
        return a, b, c, d

    @property
    def unflattened(self) -> bool:
        """Whether the columns and some of the rows make up the layer's features.

        As in 1792x28 and 784x128: these are 64 images of 28 rows.
        """
        if self.shapes is None:
            return False
        rows, columns, features, _ = self.shapes
        # An image isn't much wider than high, so it has at least as many rows.
        return (
            0 < columns < features
            and features % columns == 0
            and features // columns >= columns
            and rows % (features // columns) == 0
        )

    @cached_property
    def capability(self) -> int:
        """The GPU's compute capability times 10; 0 if the report doesn't tell."""
        match = CAPABILITY.search(self.searched)
        if match:
            major, minor = (part for part in match.groups() if part)
            return int(major) * 10 + int(minor)
        known = builds.capability(self.searched)
        if known or not (beside := BESIDE.search(self.searched)):
            return known
        return int(beside[2]) * 10 + int(beside[3])

    @cached_property
    def gpu(self) -> str:
        # A warning names the GPU whose capability it tells; there may be others.
        match = WARNED.search(self.searched)
        told = match[1].strip() if match else ""
        told = builds.gpu_name(told or self.searched) or told
        return told or first(BESIDE, self.searched)

    @cached_property
    def built(self) -> list[int]:
        """The capabilities times 10 that the installed build has code for."""
        if listed := LISTED.findall(self.searched):
            return [int(major) * 10 + int(minor) for major, minor in listed]
        match = BUILT.search(self.searched)
        if match is None:
            return []
        codes = re.findall(r"sm_(\d{2,3})", match[0])
        return [int(code) for code in codes] or [
            int(major) * 10 + int(minor)
            for major, minor in re.findall(r"\((\d{1,2})\.(\d)\)", match[0])
        ]

    @property
    def transposed(self) -> bool:
        """Whether the second matrix would fit if it were transposed."""
        if self.shapes is None:
            return False
        _, columns, features, out = self.shapes
        return columns == out != features

    @property
    def two_launchers(self) -> bool:
        """Whether several tasks of a node each start several processes."""
        text = self.searched
        return bool(TASKS.search(text) and LAUNCHED.search(text))

    @property
    def second_step(self) -> bool:
        """Whether code calls `optimizer.step()` after the branch of `scaler.step`."""
        for step in SCALED_STEP.finditer(self.searched):
            indent = len(step[1].expandtabs().rpartition("\n")[2])
            for line in self.searched[step.end() :][:1_500].splitlines()[1:]:
                code = line.expandtabs().lstrip()
                if code.startswith(f"{step[2]}.step("):
                    return len(line.expandtabs()) - len(code) < indent
        return False

    @property
    def never_zeroed(self) -> bool:
        """Whether code computes gradients and takes a step, but clears none."""
        return bool(STEPPED.search(self.searched) and not ZEROED.search(self.searched))

    @property
    def old_gpu(self) -> bool:
        """Whether the installed build, or else the newest, has dropped this GPU."""
        return 0 < self.capability < min(self.built or [builds.oldest()])

    @property
    def new_gpu(self) -> bool:
        """Whether the installed build has no code for this GPU yet.

        If the report doesn't list that, it is the last build for an older major version
        of CUDA.
        """
        newest = (
            max(self.built) // 10 * 10 + 9 if self.built else builds.newest_of_older()
        )
        return self.capability > newest

    @property
    def ancient_gpu(self) -> bool:
        """Whether none of the builds that pip still installs has code for this GPU."""
        return (
            0
            < self.capability
            < min(
                code
                for codes in builds.table()["cuda"].values()
                for code in codes["x86_64"]
            )
        )

    @cached_property
    def driver_cuda(self) -> tuple[int, ...]:
        """The newest CUDA that the driver knows, as its table says; () without one."""
        match = DRIVER.search(self.searched)
        return builds.version(match[1]) if match else ()

    @property
    def image_sizes(self) -> bool:
        """Whether targets and outputs are images, and only their sizes differ."""
        match = TARGET_SIZES.search(self.searched)
        if match is None:
            return False
        # A terminal may have broken the line within a number.
        target, output = (
            sizes.replace("\n", "").split(",") for sizes in match.groups()
        )
        return len(target) == len(output) == 4 and target[:2] == output[:2]

    @property
    def close_sides(self) -> bool:
        """Whether two tensors differ by a few pixels of an image's height or width."""
        return any(
            0 < abs(int(one) - int(other)) <= MOST_PIXELS
            for one, other in SIDES.findall(self.searched)
        )

    @property
    def other_width(self) -> bool:
        """Whether layers of the body have another width, and not the heads alone."""
        return shapes.other_width(self.searched)

    @property
    def text_file(self) -> bool:
        """Whether the byte that can't be read is of a text, since no pickle has it."""
        match = UNREAD.search(self.searched)
        byte = int(match[1]) if match else 0  # 0 is of no text
        return byte not in OPCODES and (byte in b"\t\n\r" or 32 <= byte < 127)

    @property
    def without_nvidia(self) -> bool:
        """Whether there is no NVIDIA GPU: it is said, or another one is named."""
        lacked = (self.searched[a:b] for a, b in self.lacked)
        if self.holds("not_nvidia") or any(map(LACKED_NVIDIA.search, lacked)):
            return True
        is_other = self.holds("intel_gpu") or self.holds("amd_gpu")
        return is_other and not (self.shows(NVIDIA) or builds.gpu_name(self.searched))

    @property
    def old_driver(self) -> bool:
        """Whether the build's CUDA is newer than the driver's, so that it can't run.

        Since CUDA 11, a driver runs all minor versions of a major version.
        """
        number = DRIVER_NUMBER.search(self.searched)
        built = BUILT_WITH.search(self.searched)
        if number and built:
            cuda = (int(built[1]), int(built[2]))
            least = builds.table()["drivers"].get(built[1], OLD_DRIVERS.get(cuda, 0))
            return int(number[1]) < int(least)
        driver, build = DRIVER.search(self.searched), BUILD.search(self.searched)
        if driver is None or build is None:
            return False
        known = tuple(map(int, driver[1].split(".")))
        needed = tuple(int(part) for part in build.groups() if part)
        return known < (needed if needed < (11, 0) else needed[:1])

    @cached_property
    def memory(self) -> dict[str, float]:
        return memory.numbers(self.message)

    @property
    def fragmented(self) -> bool:
        return "unused" not in self.memory or memory.fragmented(self.memory)

    @property
    def taken(self) -> bool:
        return memory.taken(self.memory)

    @property
    def limited(self) -> bool:
        exceeds = "would exceed per_process_memory_fraction"
        return exceeds in self.message or memory.limited(self.memory)

    @property
    def too_large(self) -> bool:
        # If the message doesn't say how large the GPU is, the person may, roughly.
        whole = {"total": 2 * memory.told(self.searched)}
        return memory.too_large(whole | self.memory)

    @property
    def large_piece(self) -> bool:
        """Whether an Intel GPU with enough room refused 4 GiB or more in one piece."""
        is_large = self.memory.get("asked", 0) >= 4 * memory.UNITS["GiB"]
        is_refused = "XPU" in self.message and is_large and memory.spared(self.memory)
        return is_refused or LARGER.search(self.searched) is not None

    @property
    def repeated_ranks(self) -> bool:
        """Whether some ranks started more than once, and others never."""
        started = RANK.findall(self.searched)
        different = {rank for rank, _ in started}
        return len(different) < len(started) and any(
            len(different) < int(world) for _, world in started
        )

    @property
    def both_units(self) -> bool:
        """Whether progress bars show steps per second and seconds per step."""
        return all(
            re.search(rf"\d{unit}\b", self.searched) for unit in ("s/it", "it/s")
        )

    @property
    def free_enough(self) -> bool:
        """Whether the driver refused less memory than it reports as free."""
        found = self.memory
        return (
            found.get("free", 0) > found.get("asked", math.inf) and not self.fragmented
        )

    def holds(self, fact: str) -> bool:
        """Whether the report shows the situation, or the property is true."""
        if fact not in self.held:
            situation = knowledge().situations.get(fact)
            self.held[fact] = bool(
                self.shows(situation) if situation else getattr(self, fact)
            )
        return self.held[fact]

    def fields(self) -> dict[str, str]:
        """What the texts of errors.toml may name, with words for what isn't known."""
        machine = "aarch64" if ARM.search(self.searched) else "x86_64"
        fields = dict(builds.fields())
        python = builds.python(self.text)
        wheel, torch = builds.for_gpu(
            self.capability, machine, self.driver_cuda, python
        )
        toolkit, built_with = (
            match.groups() if (match := TOOLKITS.search(self.searched)) else ("", "")
        )
        needed = NEEDED.search(self.searched)
        widths = shapes.WIDTHS.search(self.searched)
        fields |= {
            "wheel": wheel,
            "pinned": f'"torch=={torch}.*"' if torch else "torch",
        }
        fields |= {
            "devices": " and one on ".join([*self.devices, "another device"][:2]),
            "shapes": "",
            "columns": "in_features",
            "features": "in_features",
            "out": "out_features",
            "images": "N",
            "gpu": self.gpu or "This GPU",
            "capability": f"{self.capability // 10}.{self.capability % 10}"
            if self.capability
            else "see below",
            "ranks": first(RANKS, self.searched, "several"),
            "workers": first(WORKERS, self.searched, "4"),
            "numbers": "",
            "toolkit": toolkit or "another version",
            "built_with": built_with or "X.Y",
            "needed_torch": needed[1] if needed else "X.Y.Z",
            "needed_wheel": f"cu{needed[2]}" if needed else wheel,
            "installed": first(INSTALLED, self.searched, "X.Y.Z"),
            "saved_shape": widths[2] if widths else "another shape",
            "model_shape": widths[3] if widths else "another one",
        }
        if self.shapes:
            rows, columns, features, out = self.shapes
            fields |= {
                "shapes": f" ({rows}x{columns} and {features}x{out})",
                "columns": str(columns),
                "features": str(features),
                "out": str(out),
            }
            if self.unflattened:
                fields["images"] = str(rows * columns // features)
        if numbers := memory.explained(self.memory):
            fields["numbers"] = f"\n\n{numbers}"
        return fields


def installed(change: str, details: Details) -> str:
    """A change with the command by which this report's environment gets packages."""
    if not PIP.search(change):
        return change
    text, has_torch = details.searched, PIP_OF_TORCH.search(change)
    if "torchaudio" in text:
        change = re.sub(
            r"\btorch torchvision\b(?! torchaudio)", r"\g<0> torchaudio", change
        )
    for installer in knowledge().installers:
        if installer.shown.search(text):
            command = installer.command or "pip install"
            change = command.join(PIP.split(change))
            is_noted = installer.note and (not installer.of_torch or has_torch)
            return f"{installer.note}\n{change}" if is_noted else change
    return change


def untried(change: str, details: Details) -> tuple[str, bool]:
    """A change whose lines that were tried already come last, and if these are all.

    A line was tried if one of its settings was, or all of its calls. Only lines that
    stand by themselves count: not those of a block, and no comments.
    """
    called = {*CALL.findall(details.attempts)}
    lines = change.strip("\n").split("\n")
    after = [*lines[1:], ""]

    def is_tried(line: str) -> bool:
        settings = {setting.replace(" ", "") for setting in SETTING.findall(line)}
        # Somebody may have called it without keeping what it returns.
        calls = (
            set() if ASSIGNED.match(line) else {*CALL.findall(line.partition("#")[0])}
        )
        return bool(details.tried & settings or (calls and calls <= called))

    done = [
        line
        for line, following in zip(lines, after, strict=True)
        if line[:1] not in (" ", "#", "") and following[:1] != " " and is_tried(line)
    ]
    rest = [line for line in lines if line not in done]
    has_more = any(line[:1] not in ("#", "") for line in rest)
    if done and any(line[:1] not in (" ", "#", "") for line in rest):
        change = "\n".join(
            [*rest, "# you have tried or excluded this, as you write:", *done]
        )
    return change, bool(done) and not has_more


def filled(text: str, fields: dict[str, str]) -> str:
    """The text with the fields in braces filled in; other braces stay."""
    return re.sub(r"\{(\w{1,30})\}", lambda at: fields.get(at[1], at[0]), text)
