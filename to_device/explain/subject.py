"""What a text is about: torch, training, or a program that has nothing to do with them.

Most programs run out of memory, and many use a GPU: games, video, browsers, and
frameworks other than torch. So words such as "GPU" and "CUDA" say only that a text may
be ours. It has to say more: torch's own words, what somebody does who trains, or
Python's. The signs of another program (`framework`, `dialect`, `program`, and `foreign`
in errors.toml) have to be outweighed.
"""

import re
from functools import cached_property

from to_device.explain.causes import Cause, fold, knowledge, trigrams
from to_device.explain.report import Report

MOST_SEARCHED = 60_000  # characters in which the signs of a program are looked for
MOST_TOLD = 1_000  # characters of a text that may be a message and a question about it
BARE = 100  # characters of a text that may be a message alone, paths apart
LEAST_OF_A_NAME = 24  # letters of a wording that no other program's message has
# Words of a text that is about devices or training.
ABOUT = re.compile(
    r"\b(?:cuda[\d.]{0,5}|gpus?\d?|torch|pytorch|tensors?|nccl|hip|rocm|cudnn|cublas|triton|autograd"
    r"|dataloader|num_workers|state_dict|nvidia|mps|xpu|tpu|ddp|fsdp|aten|c10d?|fp16|bf16"
    r"|float16|bfloat16|vram|[rg]tx|epochs?|backward|gradients?|optimizer|scalar"
    r"|batch ?size|dropout|torchrun|deepspeed|lightning|accelerate|onnx(?:runtime)?"
    r"|torchscript|libtorch|defaultcpuallocator|cusolver|cusparse|cufft|dynamo|inductor|(?:distributed)?dataparallel)\b"
    r"|torch[._]|cuda[A-Z_]|nvidia-"
    # torch's own names of what a person does with layers, and GPUs that only compute
    r"|\b(?:requires_grad|no_grad|zero_grad|named_parameters|batch ?norm(?:[123]d)?"
    r"|batch normalization|running_(?:mean|var)|torchmetrics"
    r"|[ahv]100|[hb]200|gh200|l40s?)\b"
    # libraries around torch, the models that they are for, and what is done with them
    r"|\b(?:bitsandbytes|xformers|diffusers|comfyui|vllm|ultralytics"
    r"|yolo(?:v?\d+\w?)?|peft|q?lora|gptq|awq|gguf|torchao|albumentations|webdataset"
    r"|autocast|gradscaler|quantiz(?:e|ed|ing|ation)|fine-?tun(?:e|ed|ing)|sdxl|trl"
    r"|stable.?diffusion|resnet\d*|unet|image-?net|lstms?|safetensors|tensorboard|wandb)\b"
    # torch's other packages, what people do with it, and kinds of networks
    r"|\btorch(?:vision|audio|text|rl|data)\b|\bdata augmentation\b"
    r"|\beval(?:uation)?(?:\(\)| mode)|\bdqn\b"
    r"|\breinforcement learning\b|\bauto-?encoders?\b|\bself-attention\b"
    r"|\b(?:attention|padding|causal)[ _]masks?\b|\bsoftmax\b"
    r"|\bmulti-?head ?attention\b"
    r"|\b(?:images?|masks?|semantic|instance) (?:and (?:the )?)?segmentations?\b"
    # torch's losses and torchvision's folders, and what a training prints
    r"|\b(?:cross_?entropy|bce(?:withlogits)?|mse|nll|l1|huber|kldiv|ctc)_?loss\b"
    r"|\b(?:imagefolder|mnist|cifar-?\d+|relu)\b"
    r"|\bloss: ?\d[^\n]{1,30}\bacc(?:uracy)?: ?\d"
)
# Devices, and libraries that do their work on one of them.
DEVICE = re.compile(
    r"\b(?:gpus?|cuda|rocm|xpu|mps|vram|bitsandbytes|xformers|flash[-_ ]?attn|triton"
    r"|nccl|cudnn|cublas|deepspeed|vllm|auto-?gptq|apex|geforce|rtx|gtx)\b|\.cuda\b"
)
# Two words that mean a network's training together: somebody may also train a dog.
TRAINED = re.compile(r"\b(?:train(?:s|ed|ing)?|fine-?tun\w+)\b")
MEASURED = re.compile(
    r"\b(?:loss(?:es)?|learning rate|iterations?|pre-?trained|checkpoints?|validation"
    r"|image-?net|resnet\w*)\b"
)
# Words that any text in Python may have, and that a text of ours has at the least.
NEAR = re.compile(
    r"\.py\b|python|traceback|\w(?:error|exception):|\bpip\b|\bnumpy|pickle|device_map"
    r"|is_available|\bnn\.|multi-?processing|nccl|\bmps\w|\w_graph|\.so\b"
    r"|undefined symbol|(?:build|compil|load)ing (?:the )?extension|onnx"
    r"|omp_num_threads|tokenizers|triton|inductor|dynamo"
    r"|\b(?:autocast|gradscaler|adamw?|sgd|conv[123]d|grid_sample|linalg)\b"
    r"|\b(?:q?lora|peft|quantiz\w+|fine-?tun\w+|grad_norm|diffusion|overfit\w*)\b"
    r"|\b(?:colab|kaggle|jupyter|(?:half|mixed|full) precision|whisper\w*|apple silicon"
    r"|stable.?diffusion|text.to.(?:image|speech|video)"
    r"|validation (?:set|loss|accuracy))\b"
    r"|\b(?:models?|train\w*|inference|graph|barrier|collective|loss\w*|weights?"
    r"|checkpoints?|datasets?|matri\w+|mat[12]|embeddings?|workers?|ranks?|sizes? of"
    r"|shapes?|cpu|(?:random|the) seeds?|(?:non-?)?deterministic)\b"
)
# What only torch, or a program that is built on it, has.
OWN = re.compile(
    r"torch|\b(?:aten|c10d?|thc|state_dict|num_workers|ddp|fsdp|gloo"
    r"|inductor|miopen|xformers|bitsandbytes|deepspeed|diffusers"
    r"|comfyui|vllm|sglang|ultralytics|detectron2?|fastai|peft|q-?lora|easyocr"
    r"|automatic1111|fooocus|invoke ?ai"
    r"|stable.?diffusion|mkldnn|batch_first|pin_memory|requires?[_ ]grad|grad_fn"
    r"|map_location|retain_graph|non_blocking|dynamic_axes"
    r"|distributed(?:dataparallel|sampler)|device_map|load_state_dict)\b"
    r"|\.pth?\b|\+cu\d{3}\b"
    r"|\bmax_split_size_mb\b|\btried to allocate [\d.]{1,9} ?[kmg]i?b|\bengine ?core\b"
)
# What a program on torch has, and sometimes one on another framework.
SHARED = re.compile(
    r"\b(?:autograd|dataloader|triton|transformers|hugging ?face|from_pretrained)\b"
    r"|\.safetensors\b"
)
# Where a name doesn't say what a program uses: a link, and a form's "not installed".
ASIDE = re.compile(r"\bhttps?://\S++|[^\n(]{1,40}\(gpu\?\): not installed")
# torch's `nn`, and that of other libraries.
LAYERS = re.compile(r"(?<!\.)\bnn\.\w")
OTHER_LAYERS = re.compile(
    r"\b(?:from|import) +(?!torch)[\w.]+ +(?:import +(?:\w+ +as +)?|as +)nn\b"
)
# What somebody does who trains a network or uses one.
LEARNING = re.compile(
    r"\b(?:train(?:s|ed|ing|er)?|fine-?tun\w*|epochs?|backward|gradients?|optimizers?"
    r"|batch[ _-]?size|dropout|fp16|bf16|b?float16|tensors?|nccl|loss|inference"
    r"|detector|yolo\w*|neural|deep learning|colab|kaggle|jupyter)\b"
)
# What a traceback in Python has.
PYTHON = re.compile(
    r"traceback|\bfile \"[^\"\n]{1,200}\", line|\.py\b|\bpython\b"
    r"|\b(?:runtime|value|type|import|modulenotfound|key|attribute|assertion|index|os"
    r"|notimplemented|unpickling|memory)error\b|\b(?:user|runtime|future)warning\b"
    r"|\bprocess finished with exit code\b"
)
# What a text about torch may have at the least if it has nothing of the above: words of
# networks and their data, of devices as torch names them, and of the usual tools.
HINT = re.compile(
    r"\b(?:models?|networks?|layers?|weights|pretrained|backbone|embeddings?|attention"
    r"|conv\dd|convolution\w*|[cr]nn|lstm|transformer|forward|batch\w*|mini-?batch\w*"
    r"|labels?|targets?"
    r"|cross.?entropy|predict\w*|accuracy|validation|evaluation|iterations?|seeds?"
    r"|non-?determin\w+|deterministic|nan|half precision|mixed precision|matri\w+"
    r"|eval(?:uation)? mode|dqn|reinforcement learning|auto-?encoders?|augment\w*"
    r"|masks?|transforms?|datasets?|data.?load\w*|tokens?|tokenizers?|max_new_tokens"
    r"|checkpoints?|state.dict|load_\w+|num_\w+|\w+tensors?|dtypes?|float\d*|uint8"
    r"|channels?|zero_grad|backpropagation|is_available|init_process|gpu[- ]util"
    r"|[cg]pu[- ](?:version|build|wheel)"
    r"|(?:use|using) (?:all|both|several|two|2) (?:of )?(?:the |my )?gpus"
    r"|tesla [tvpak]\d+s?"
    r"|process.group|\w*dataparallel|data.parallel\w*|multi-?gpu|multiple gpus"
    r"|gpu ?\d\b[^\n]{0,80}\bothers|(?:im|un)balanced?"
    r"|gpu.?ids?|ranks?|nproc\w*|world.?size|nnodes|autocast|amp|recompil\w*|extension|nvcc|cublas"
    r"|cudnn|flash.?att\w+|pinned|offload\w*|meta device|device-side|no module named"
    r"|pip|conda|pycharm|notebook|kernel restart\w*|scripts?|workers?|docker"
    r"|containers?|rocm|hsa_\w+|gfx\d+|slurm|sbatch|srun|ray|img2img|txt2img|llms?|cuda:\d|onnx\w*"
    r"|xpu|mps|tpu|npu|sm_\d{2,3}"
    # the large models that everybody knows, with a size or a version
    r"|(?:llama|vicuna|mistral|mixtral|qwen|gemma|chatglm|baichuan|deepseek|falcon|bert|gpt)"
    r"[- ]?v?\d[\w.]*|\w+-\d{1,3}b|load[-_](?:in[-_])?[48]-?bit"
    # what people write who run the code of a paper
    r"|(?:the|your|original) (?:paper|code)|table\.? ?\d"
    r"|(?:great|nice|excellent|amazing) work"
    # what finished programs on torch are for
    r"|whisper\w*|transcri(?:be[sd]?|bing|ption)|tts|voice (?:clon|model|conver)\w*"
    r"|text.to.(?:image|speech|video)|face.?swap\w*|lip.?sync\w*"
    r"|(?:generat|train|run)\w* (?:(?:the|a|an|my) )?(?:voices?|speech|images?|ai))\b"
    r"|\+cu\d\d|cuda\(\)|\bcuda[._](?!error)\w|\.to\(|'to'|\.pth?\b"
)
# Words of any question, and of any text about a GPU: they say nothing of a program.
ASKED = re.compile(
    r"(?:a|again|an[dy]?|anybody|anyone|appears|as|at|be|by|can|could|do|does|errors?"
    r"|everyone|face|file|fix|following|for|from|gave|geforce|gets?|getting|gives?|got|gpu"
    r"|gtx|guys|have"
    r"|hello|help|hey|hi|how|i|idea|in|is|issue|it|kindly|know|like|me|meet|met|my"
    r"|nvidia|occurred|of|on|please|problem|report|resolve|rtx|run|running|same|script|so"
    r"|solution|solve"
    r"|some(?:body|one)|sorry|thank|thanks|the|then|there|this|to|try|type|want|was"
    r"|unable|user|what|when|while|why|with|you)"
)
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
FILE = re.compile(r"(?<!\S)\S{1,100}\.\w{1,5}(?=[,;:.!?]?(?:\s|$))")
# What the form of a tracker puts around an answer.
FORM = re.compile(r"#{1,6} [\w ?]{1,40}|[`~]{3}\w*")
PREFIX = re.compile(r"^(?:[\w.]{1,40} ?){0,2}\berror: ")
PATH = re.compile(r"\bhttps?://\S++|(?:\b[A-Za-z]:)?(?:[/\\][^\s/\\]+){2,}")


def is_about(text: str) -> bool:
    """Whether a text has words that only texts about devices or training have."""
    lower = text.lower()
    is_trained = TRAINED.search(lower) and MEASURED.search(lower)
    return bool(is_trained or ABOUT.search(lower))


def _telling(text: str) -> str:
    """The lines, each once, that consist of more than the words of any question."""
    kept: list[str] = []
    for line in text.splitlines():
        words = WORD.findall(FILE.sub("", line))
        said = PREFIX.sub("", line)
        is_told = len(line) <= BARE and any(said in other for other in kept)
        is_form = FORM.fullmatch(line) is not None
        if not is_told and not is_form and not all(map(ASKED.fullmatch, words)):
            kept.append(line)
    return "\n".join(kept)


class Subject:
    """What a report says of what it is about."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.lower = knowledge().translated(report.text).lower()
        # Any word may be in a path, as in "/opt/cuda/bin".
        self.plain = PATH.sub("", self.lower)

    @cached_property
    def is_bare(self) -> bool:
        """Whether the text may be a message alone, which needs no word of ours."""
        return len(self.plain) <= BARE or len(_telling(self.plain[:MOST_TOLD])) <= BARE

    @cached_property
    def names_torch(self) -> bool:
        """Whether it names torch, a program that is built on it, or an argument."""
        return self._has_own(self.lower) or SHARED.search(self.lower) is not None

    @cached_property
    def names_device(self) -> bool:
        """Whether it names a device or one of its libraries, paths apart."""
        return DEVICE.search(self.plain) is not None

    @cached_property
    def is_named(self) -> bool:
        """Whether it names torch, or what somebody does who trains a network."""
        return self.names_torch or LEARNING.search(self.plain) is not None

    @cached_property
    def is_firm(self) -> bool:
        """Whether it names torch or training, or is of a program in Python."""
        return self.is_bare or self.is_named or PYTHON.search(self.plain) is not None

    @cached_property
    def is_weak(self) -> bool:
        """Whether it has nothing that other GPU programs' reports don't have."""
        return not self.is_firm and HINT.search(self.plain) is None

    @cached_property
    def is_strange(self) -> bool:
        """Whether it has none of the words of devices and training."""
        return not is_about(self.lower)

    @cached_property
    def is_elsewhere(self) -> bool:
        """Whether it is about a program that uses a GPU without torch, or none."""
        told = ASIDE.sub("", self.lower)
        if self._has_own(told):
            return False
        if self._shows("dialect"):
            return True
        if SHARED.search(told):
            return False
        return self._shows("framework") or (
            not self.is_named
            and self._shows("program")
            and not self._has_known_message(self.report.rest.text)
        )

    @cached_property
    def is_ours(self) -> bool:
        """Whether it may have a cause."""
        if self.is_elsewhere:
            return False
        if self._shows("foreign"):
            return is_about(self.plain)
        is_near = (
            not self.is_strange or self.names_torch or bool(NEAR.search(self.lower))
        )
        messages = (message.text for message in self.report.messages)
        return self.is_bare or is_near or any(map(self._has_known_message, messages))

    def may_print(self, cause: Cause) -> bool:
        """Whether the message may be torch's: any program may print a common one."""
        is_far = self.is_strange and not self.is_bare and not self.is_named
        return not (cause.common and (self.is_weak or is_far))

    def _has_own(self, text: str) -> bool:
        """Whether a text has a word of torch, or its layers."""
        has_layers = LAYERS.search(text) and not OTHER_LAYERS.search(text)
        return bool(has_layers or OWN.search(text))

    def _shows(self, situation: str) -> bool:
        text = self.report.text[-MOST_SEARCHED:]
        return knowledge().situations[situation].search(text) is not None

    def _has_known_message(self, message: str) -> bool:
        """Whether a message has a wording so long that it can only be a known one."""
        text = fold(message)
        own = trigrams(text)
        return any(
            wording.trigrams <= own and wording.shared(text) >= LEAST_OF_A_NAME
            for cause in knowledge().causes.values()
            if not cause.common
            for wording in cause.folded
        )
