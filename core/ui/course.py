"""The course: its lessons in order, as the sidebar and the home page show them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lesson:
    """One page."""

    file: str  # from the project's root, as st.page_link wants it
    title: str
    icon: str
    promise: str  # what you will be able to do after it, one sentence


HOME = Lesson(
    "home.py",
    "Run PyTorch on an accelerator",
    ":material/home:",
    "A course that you do rather than read: every number on these pages is measured "
    "here and now, and every snippet is the code that just ran.",
)
LESSONS = (
    Lesson(
        "pages/1_Device.py",
        "Device",
        ":material/memory:",
        "After this page you can say what this machine trains on and why, and find "
        "out the same on any other.",
    ),
    Lesson(
        "pages/2_Model.py",
        "Model",
        ":material/move_down:",
        "After this page you can say what `.to(device)` does to a model and to a "
        "tensor, what each of the five training steps changes, and what a copy costs.",
    ),
    Lesson(
        "pages/3_Train.py",
        "Train",
        ":material/model_training:",
        "After this page you can train a model on any device, watch its loss fall, and "
        "tell which setting made it faster.",
    ),
    Lesson(
        "pages/4_Evaluate.py",
        "Evaluate",
        ":material/fact_check:",
        "After this page you can say how good a model is, where it goes wrong, and "
        "what evaluating it should cost.",
    ),
    Lesson(
        "pages/5_Compare.py",
        "Compare",
        ":material/speed:",
        "After this page you can say which of two devices is faster for your model, by "
        "how much and why, and time it so that others believe you.",
    ),
    Lesson(
        "pages/6_Speed.py",
        "Speed",
        ":material/stairs:",
        "After this page you can make training many times faster, one understood "
        "change at a time, and say how far it is to the limit of your machine.",
    ),
    Lesson(
        "pages/7_Checkpoints.py",
        "Checkpoints",
        ":material/save:",
        "After this page you can save what was trained, load it on another device, "
        "prove that it is the same model, and say which files not to open.",
    ),
    Lesson(
        "pages/8_Mistakes.py",
        "Mistakes",
        ":material/bug_report:",
        "After this page you know the classic mistakes by their messages, and those "
        "that give none by what they cost.",
    ),
)


def lesson(title: str) -> Lesson:
    """The lesson of that title."""
    return next(each for each in LESSONS if each.title == title)


def after(this: Lesson) -> Lesson | None:
    """The next lesson; None after the last."""
    place = LESSONS.index(this) + 1
    return LESSONS[place] if place < len(LESSONS) else None
