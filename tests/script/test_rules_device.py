"""Each rule on a script with its mistake, and without."""

from core.script.check import check
from tests.script.right import changed, lines, slugs


def found(text: str) -> list[str]:
    return [finding.slug for finding in check(text).findings]


def test_the_right_script_is_not_blamed():
    assert changed() == []


def test_a_checkpoint_that_is_loaded_where_it_was_is_pointed_at():
    assert slugs(", map_location=device -> ") == [("cuda_checkpoint", "look")]
    assert found('a = torch.load(f, "cpu")\nb = torch.load(f, **kwargs)') == []
    (both,) = check("a = torch.load(f)\nb = torch.load(g)").findings
    assert "2 times" in both.say


def test_cuda_in_the_script_is_pointed_at():
    assert slugs("model.to(device) -> model.cuda()") == [("cuda_hard_coded", "look")]
    asked = "if torch.cuda.is_available():\n    x = x.cuda()\n"
    chosen = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    assert found(asked) == found(chosen) == []
    for line in (
        'device = torch.device("cuda:0")',
        'device = "cuda"',
        'x = torch.rand(3, device="cuda")',
    ):
        assert found(line) == ["cuda_hard_coded"]
    either = 'device = "cpu"\nif torch.cuda.is_available():\n    device = "cuda"'
    first = 'device = torch.device("cuda")\n'
    second = 'device = torch.device("cpu")'
    later = f"{first}if not torch.cuda.is_available():\n    {second}"
    tried = f'try:\n    x.to("cuda")\nexcept RuntimeError:\n    {second}'
    for text in (either, later, tried, 'name = "cuda"'):
        assert found(text) == []
    assert found(f"{first}if verbose:\n    {second}") == ["cuda_hard_coded"]


def test_loading_whatever_is_in_a_file_is_pointed_at():
    allowed = "map_location=device -> map_location=device, weights_only=False"
    assert slugs(allowed) == [("pickle_refused", "look")]
    assert "weights_only=False" in lines(allowed)[0]
    assert slugs(allowed.replace("False", "True")) == []
    assert found('x = json.load(f, "cpu", weights_only=False)') == []
