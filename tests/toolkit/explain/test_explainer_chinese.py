"""Questions in Chinese, in which many reports are."""

import pytest

from tests.toolkit.explain.answers import slug
from to_device.explain.explainer import explain

CHINESE_QUESTIONS = {
    "为什么用mps推理反而比cpu慢": "mps_slow",
    "为啥我的gpu比cpu慢": "gpu_slower",
    "训练的时候显存不够怎么办": "out_of_memory",
    "训练集准确率很高，验证集准确率很低": "overfitting",
    "多卡训练卡住不动": "rank_waits",
    "换成fp16之后loss变成nan了": "nan_half",
    "loss一直不下降是什么原因": "not_learning",
}


@pytest.mark.parametrize(("question", "cause"), CHINESE_QUESTIONS.items())
def test_a_question_in_chinese_is_read(question, cause):
    answer = explain(question)
    assert cause in map(slug, (answer, *answer.near))
