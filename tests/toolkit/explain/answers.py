from to_device.explain.explainer import Answer


def slug(answer: Answer) -> str:
    return answer.cause.slug if answer.cause else answer.kind
