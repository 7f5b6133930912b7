"""core.measure.records: records of other machines."""

import json

from core.measure import records

FIGURES = {
    "environment": {"device_name": "NVIDIA H200 (141 GB)"},
    "date": "2026-11-20T10:00:00+00:00",
}


def test_what_is_written_is_read(tmp_path):
    """A record comes back with its device and its date, under the device's name."""
    path = records.write(FIGURES, tmp_path)
    assert path.name == "nvidia-h200-141-gb.json"
    (record,), notices = records.records(tmp_path)
    assert not notices
    assert record.label == "NVIDIA H200 (141 GB), recorded 2026-11-20"
    assert record.figures["environment"] == FIGURES["environment"]


def test_a_damaged_or_old_record_is_left_out_with_a_notice(tmp_path):
    """The others are read; each that is not is named, with the reason."""
    records.write(FIGURES, tmp_path)
    (tmp_path / "cut.json").write_text('{"format": 2, "env')
    (tmp_path / "old.json").write_text(json.dumps({**FIGURES, "format": 0}))
    (tmp_path / "list.json").write_text("[1, 2]")
    part = {"format": records.FORMAT, "date": "x"}
    (tmp_path / "part.json").write_text(json.dumps(part))
    found, notices = records.records(tmp_path)
    assert len(found) == 1
    assert len(notices) == 4
    for name in ("cut.json", "old.json", "list.json", "part.json"):
        assert sum(name in notice for notice in notices) == 1


def test_no_folder_is_no_record(tmp_path):
    """A project without records is not an error."""
    assert records.records(tmp_path / "nothing") == ([], [])


def test_the_records_of_this_project_can_be_read():
    """Whatever is committed is whole and of the present format."""
    assert records.records()[1] == []
