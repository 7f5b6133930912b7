"""What counts as a text about torch, though it doesn't name it."""

import pytest

from tests.toolkit.explain.answers import slug
from to_device.explain.explainer import explain
from to_device.explain.report import read
from to_device.explain.subject import Subject


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        # A library's own name may have torch in it.
        (
            "Can I speed up pytorchvideo? It takes me a second to load one video.",
            "video_decoding",
        ),
        # Any program may fill the RAM, so that cause leaves its share to the others.
        (
            "High CPU RAM usage. I tried to load kosmos-2 with 29 GB of RAM and it ran "
            "out. Is there any way to use less RAM while loading the model?",
            "ram_at_load",
        ),
        # A model's name with its size is a word of networks.
        (
            "Why is inference of vicuna-7b slow on my GPU?",
            "generation_slow",
        ),
        # Who runs the code of a paper uses a network.
        (
            "Nice work! Why is the GPU utilization so low when I run your code?",
            "gpu_waits",
        ),
        # A loss or a dataset of torch is known by its name.
        (
            "Does ImageFolder sort the folders 1, 2 and 10 by their numbers?",
            "class_folders",
        ),
    ],
)
def test_names_of_libraries_and_models_are_words_of_ours(text, cause):
    answer = explain(text)
    assert cause in map(slug, (answer, *answer.near)), slug(answer)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "In Keras my net learned the same data. In PyTorch the loss does not go "
            "down, I forgot nothing but optimizer.zero_grad()?",
            "no_zero_grad",
        ),
        (
            "torch.cuda.is_available() returns False, but TensorFlow sees the GPU: "
            "tf.config.list_physical_devices('GPU') has one entry.",
            "cuda_not_found",
        ),
        (
            "Hugging Face Trainer: CUDA out of memory in the second epoch with "
            "per_device_train_batch_size=8. With Keras, 8 was fine.",
            "out_of_memory",
        ),
        (
            "My PyTorch training gets CUDA out of memory, since a process of JAX has "
            "taken 75% of the GPU.",
            "out_of_memory",
        ),
        (
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. The dataset "
            "compiles a function with numba.",
            "cuda_fork",
        ),
        (
            "library(torch)\nmodel <- nn_module(...)\nError: Expected all tensors to "
            "be on the same device, but found at least two devices, cuda:0 and cpu!",
            "two_devices",
        ),
        (
            "#SBATCH --mem=16G\nmodule load cuda/12.1\nsrun python train.py\n"
            "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4.batch. "
            "Some of your processes may have been killed",
            "host_memory",
        ),
        (
            "I exported my PyTorch model with torch.onnx.export, and "
            "cv2.dnn.readNetFromONNX gives another output than the model. Why?",
            "export_differs",
        ),
        (
            "tensorflow/core/util/port.cc:113] oneDNN custom operations are on.\n"
            "RuntimeError: element 0 of tensors does not require grad and does not "
            "have a grad_fn",
            "no_graph",
        ),
        (
            "Flax checkpoint to PyTorch: load_state_dict says Missing key(s) in "
            "state_dict: 'conv.weight'. Unexpected key(s) in state_dict: 'conv.kernel'",
            "wrong_architecture",
        ),
        (
            "Blender's Cycles renders on my RTX 3060, but torch.cuda.is_available() is "
            "False.",
            "cuda_not_found",
        ),
        (
            "The results of my PyTorch model differ from MATLAB's by 1e-3 on the GPU, "
            "matmul of float32 on an RTX 3090.",
            "small_differences",
        ),
    ],
)
def test_a_text_of_ours_may_name_another_program_aside(text, cause):
    answer = explain(text)
    assert cause in map(slug, (answer, *answer.near)), slug(answer)


NAN = "The loss is nan after ten epochs in {}. {}"
SHARED = "I use transformers."
LINK = "See https://github.com/huggingface/transformers/issues/1."
FORM = "PyTorch version (GPU?): not installed (NA)"


@pytest.mark.parametrize(
    ("model", "more", "is_ours"),
    [
        ("my model", LINK, True),
        ("my Keras model", LINK, False),
        ("my Keras model", FORM, False),
        ("my model, not in Keras", SHARED, True),
        ("TFBertForTokenClassification", SHARED, False),
        ("TFBertForTokenClassification", "In PyTorch it isn't.", True),
    ],
)
def test_a_name_in_a_link_or_a_form_is_not_what_a_program_uses(model, more, is_ours):
    assert Subject(read(NAN.format(model, more))).is_ours == is_ours
