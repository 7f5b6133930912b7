"""core.store.answers: what visitors answered."""


def test_the_newest_answer_of_each_visitor_is_kept(store):
    """By its question, and gone with the visitor."""
    store.answers.keep("me", "race", 0)
    store.answers.keep("me", "race", [1, "CPU"])
    store.answers.keep("me", "ladder", "10×")
    store.answers.keep("you", "race", 2)
    assert store.answers.of("me") == {"race": [1, "CPU"], "ladder": "10×"}
    store.visitors.delete("me")
    assert store.answers.of("me") == {}
    assert store.answers.of("you") == {"race": 2}
