"""What counts as a text about torch, though it doesn't name it."""

import pytest

from tests.toolkit.explain.answers import slug
from to_device.explain.explainer import explain


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
    ],
)
def test_names_of_libraries_and_models_are_words_of_ours(text, cause):
    answer = explain(text)
    assert cause in map(slug, (answer, *answer.near)), slug(answer)
