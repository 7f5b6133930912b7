import re

import pytest
from playwright.sync_api import expect

from tests.e2e.walk import SLOW, key, ready, result, start

pytestmark = pytest.mark.browser

PARTS = (  # an address, a tab with code to open there, and what is read in it
    ("Device", "", "current_accelerator(check_available=True)"),
    ("Device", "", "get_device_name(0)"),
    ("Model?tab=A+default+device", "", "zeros_like(existing)"),
    ("Train?task=sprites&batch_size=1&epochs=200", "The batches", "torch.randperm"),
    ("Train?task=sprites", "The criterion", "nn.BCEWithLogitsLoss"),
    ("Train?task=sprites", "", "after the forward pass"),  # zero_grad may come there
    ("Mistakes?mistake=model_not_moved", "", "model_not_moved"),
)


def test_each_part_of_the_lesson_is_on_its_page(visitor, server):
    page = visitor()
    for address, tab, part in PARTS:
        page.goto(f"{server.url}/{address}")
        if tab:
            ready(page).get_by_role("tab", name=tab).click()
        expect(ready(page).get_by_text(part).first).to_be_attached(timeout=SLOW)
        expect(page.get_by_text("Read more")).to_be_visible()
        expect(page.get_by_test_id("stException")).to_have_count(0)


def test_a_move_is_forgotten_made_and_found_to_be_slow_in_a_chain(visitor, server):
    page = ready(visitor("Model"))
    page.get_by_text("Forget the labels").click()
    expect(page.get_by_text(re.compile("RuntimeError")).first).to_be_visible(
        timeout=SLOW
    )
    page.goto(f"{server.url}/Model?tab=Move+a+model")
    key(ready(page), "move_model").click()
    expect(page.get_by_text("register_buffer").first).to_be_attached(timeout=SLOW)
    page.goto(f"{server.url}/Device?tab=Why+a+GPU+is+fast")
    key(ready(page), "multiply").click()
    key(ready(page), "show_multiply_guess").click()
    said = page.get_by_role("list").get_by_text("In a chain")
    expect(said).to_be_visible(timeout=SLOW)
    page.goto(f"{server.url}/Train?task=sprites&epochs=1&batch_size=512")
    expect(result(start(page))).to_be_visible(timeout=SLOW)
    page.goto(page.url.replace("/Train", "/Evaluate") + "&tab=The+cost")
    key(ready(page), "compare_precisions").click()
    key(page, "show_precision_guess").click()
    expect(page.get_by_text("In bfloat16")).to_be_visible(timeout=SLOW)
