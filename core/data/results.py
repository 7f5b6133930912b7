"""What is told of the files of Fashion-MNIST: plain data, without torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Download:
    """How far a download has come."""

    done_bytes: int
    total_bytes: int
