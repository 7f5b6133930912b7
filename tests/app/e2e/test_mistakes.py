import re

import pytest
from playwright.sync_api import expect

from tests.app.e2e.walk import PHONE, SLOW, key, ready, sideways

pytestmark = pytest.mark.browser


def test_a_learner_finds_a_mistake_and_makes_it_while_another_does_too(visitor):
    """Paste, find, run with many clicks; two people at once, and on a phone.

    Then a script is checked.
    """
    page = ready(visitor("Mistakes"))
    other = visitor("Mistakes?mistake=out_of_memory", **PHONE)
    said = page.get_by_label("Paste an error")
    said.fill("my loss does not go down")
    # The last one: while the page is drawn anew its old elements are there as well.
    found = key(page, "run_mistake_softmax_before_loss").last
    expect(found).to_be_visible(timeout=SLOW)
    said.fill(
        "RuntimeError: Expected all tensors to be on the same device, but found at "
        "least two devices, cuda:0 and cpu!"
    )
    title = "The tensors in one operation are on different devices"
    expect(page.get_by_text(title).last).to_be_visible(timeout=SLOW)

    key(ready(other), "run_mistake_out_of_memory").click()
    key(page, "run_mistake_data_not_moved").click(click_count=5)
    expect(page.get_by_text("RuntimeError", exact=True)).to_be_visible(timeout=SLOW)
    expect(page.get_by_text("→ return model(inputs)")).to_be_visible(timeout=SLOW)
    expect(page.get_by_test_id("stAlertContentSuccess").first).to_be_visible()
    # By its mark, since a machine of another kind may set no limit of memory.
    expect(other.get_by_text("256 MiB")).to_be_visible(timeout=SLOW)
    expect(other.get_by_test_id("stAlertContentSuccess")).to_be_visible()
    script = page.get_by_label("Paste a training script")
    script.fill(
        "import torch\n"
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
        "model = torch.nn.Linear(3, 2).to(device)\n"
        "x = torch.rand(3)\nx.to(device)\nmodel(x)"
    )
    key(page, "check_my_script").click()
    expect(page.locator("li.marked")).to_have_count(1, timeout=SLOW)
    script.fill("")
    script.press_sequentially("for r in x:\nc")  # no shortcut of Streamlit's
    expect(script).to_have_value("for r in x:\n    c")
    expect(page.locator("li.marked")).to_have_count(0)
    script.fill("x = 1" + " + 1" * 100 + "\ny = 2")  # the first line wraps
    assert script.evaluate("each => each.scrollWidth <= each.clientWidth")
    numbers = script.locator("xpath=..").locator("li")
    first, last = (number.bounding_box() for number in numbers.all())
    assert first["height"] > 2 * last["height"]
    for each in (page, other):
        expect(each.get_by_test_id("stException")).to_have_count(0)
        assert sideways(each) <= 2


def test_arrow_keys_move_along_the_answers_and_enter_answers(visitor):
    page = ready(visitor("Mistakes"))
    answers = page.locator("[class*=st-key-question_] input[type=radio]")
    answers.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(answers.nth(2)).to_be_focused()
    expect(answers.nth(2)).not_to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"^[01] of 1$"))).to_be_visible()
    expect(answers.nth(2)).to_be_checked()
    expect(answers.nth(2)).to_be_focused()
