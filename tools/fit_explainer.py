"""Fit what the features of a person's words are worth: to_device/explain/fitted.toml.

    python -m tools.fit_explainer

Each sentence of errors.toml is left out once, and has to be found by the others. The
weights are those under which the right causes are the likeliest (conditional logit). A
cause whose probability is 0.9 should then be right 9 times out of 10: see the table
that this prints.
"""

import torch

from to_device.explain.causes import FITTED, knowledge
from to_device.explain.evidence import features

NAMES = ("best", "second", "covered", "nothing")
STEPS = 200
HEADER = """\
# What a cause's similarity to a person's words is worth. Written by
# `python -m tools.fit_explainer` from the {n:,} sentences of errors.toml.
"""


def examples() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The features of all keys, the last one "nothing", and which of them are right."""
    found = []
    causes = knowledge().causes
    lines = [line for cause in causes.values() for line in cause.said.splitlines()]
    lines = [line for line in [*lines, *knowledge().none["said"].splitlines()] if line]
    for i, (line, sentence) in enumerate(
        zip(lines, knowledge().sentences, strict=True)
    ):
        similar = features(line, leave_out=i)
        if sentence.key not in causes:
            similar.pop(sentence.key, None)
            right = [key not in causes for key in similar]
        else:
            right = [key == sentence.key for key in similar]
        rows = [[*values, 0.0] for values in similar.values()]
        rows.append([0.0, 0.0, 0.0, 1.0])
        right.append(sentence.key not in causes)
        if any(right):
            found.append((torch.tensor(rows), torch.tensor(right)))
    return found


def padded(
    data: list[tuple[torch.Tensor, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The features, and the masks of what is there and of what is right."""
    pad = torch.nn.utils.rnn.pad_sequence
    rows = pad([rows for rows, _ in data], batch_first=True)
    there = pad([torch.ones(len(rows)) for rows, _ in data], batch_first=True).log()
    right = pad([right.float() for _, right in data], batch_first=True).log()
    return rows, there, right


def main() -> None:
    data = examples()
    rows, there, right = padded(data)
    weights = torch.tensor([12.0, 6.0, 4.0, 5.0], requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        scores = rows @ weights
        wrong = (scores + there).logsumexp(1) - (scores + right).logsumexp(1)
        loss = wrong.mean()
        loss.backward()
        optimizer.step()
    values = [round(value, 2) for value in weights.tolist()]
    lines = [f"{name} = {value}" for name, value in zip(NAMES, values, strict=True)]
    FITTED.write_text(HEADER.format(n=len(data)) + "\n".join(lines) + "\n", "utf-8")
    print(f"loss {loss.item():.3f}", *lines, sep="\n")
    sure = {}
    for rows, right in data:
        shares = (rows @ weights).softmax(0)
        best = int(shares.argmax())
        tenth = min(9, int(shares[best] * 10))
        n, hits = sure.get(tenth, (0, 0))
        sure[tenth] = (n + 1, hits + int(right[best]))
    for tenth, (n, hits) in sorted(sure.items()):
        print(f"{tenth / 10:.1f} {n:5} {hits / n:.2f}")


if __name__ == "__main__":
    main()
