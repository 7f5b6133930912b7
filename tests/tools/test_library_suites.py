from tools.library_suites import ends, summary


def report(
    name: str, outcome: str = "passed", operations: int = 0, when: str = "call", **more
) -> dict:
    done = {"operations": operations}
    properties = [["other", 1], ["to-device", done]]
    about = {"nodeid": name, "outcome": outcome, "when": when, "longrepr": None}
    return about | {"user_properties": properties} | more


def test_only_tests_that_use_the_device_and_pass_on_the_cpu_are_judged() -> None:
    before = ends(
        [
            *(report(name) for name in ("host", "right", "fault")),
            report("broken", "failed", longrepr="AssertionError: 1 == 2"),
            report("needs a GPU", "skipped", longrepr=["test.py", 1, "no GPU"]),
        ]
    )
    crash = {"message": "RuntimeError: two devices\n…", "path": "a/b.py", "lineno": 7}
    change = "…\nThe line to change (it isn't registered):\n  b.py:3  self.x = 1"
    after = ends(
        [
            report("host"),
            report("right", operations=5),
            report("right", operations=5, when="teardown"),
            report(
                "fault",
                "failed",
                longrepr={"reprcrash": crash},
                sections=[["on CUDA", change]],
            ),
            report("broken", "failed", operations=3, longrepr="AssertionError: 1 == 2"),
            report("needs a GPU", operations=1),
        ]
    )
    told = summary(before, after)
    assert told["passed on the CPU"] == 3
    assert told["of these, on the device"] == {"passed": 1, "failed": 1}
    assert told["only on the device"] == {"passed": 1}
    assert told["failures"] == {"RuntimeError: two devices (b.py:7, change b.py:3)": 1}
    assert told["skipped"] == {}


def test_a_test_is_as_bad_as_its_worst_part() -> None:
    parts = report("test"), report("test", "failed", when="teardown", longrepr="E: 1")
    assert ends([*parts])["test"]["outcome"] == "failed"
    assert ends([*reversed(parts)])["test"]["says"] == "E: 1"
