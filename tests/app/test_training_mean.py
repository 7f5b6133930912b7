import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.training import epoch_mean

LOSSES = st.lists(st.floats(0, 100), min_size=1, max_size=40)


@given(LOSSES, st.integers(1, 64), st.data())
def test_epoch_mean_counts_images(
    steps: list[float], batch_size: int, draw: st.DataObject
) -> None:
    last = draw.draw(st.integers(1, batch_size))
    images = batch_size * (len(steps) - 1) + last
    by_image = [loss for loss in steps[:-1] for _ in range(batch_size)] + steps[
        -1:
    ] * last
    assert epoch_mean(steps, batch_size, images) == pytest.approx(
        sum(by_image) / images
    )
