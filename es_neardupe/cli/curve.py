"""A small plot for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from es_neardupe.cli.output import results

__all__ = ["plot_curve"]

_HEIGHT = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def plot_curve(curve: Sequence[tuple[float, float]], threshold: float) -> None:
    """Columns as high as the probabilities, in [0, 1], over the similarities; a caret at the threshold."""
    width = 2
    for level in range(_HEIGHT, 0, -1):
        label = f"{level / _HEIGHT:4.1f} " if level in (_HEIGHT, _HEIGHT // 2) else "     "
        columns = (_EIGHTHS[round(8 * min(1, max(0, p * _HEIGHT - level + 1)))] * width for _, p in curve)
        results.print(label + "".join(columns), markup=False)
    labels = "".join(f"{s:<{2 * width}.1f}" for s, _ in curve[1::2])
    results.print("     " + " " * width + labels, markup=False)
    at = min(range(len(curve)), key=lambda place: abs(curve[place][0] - threshold))
    results.print("     " + " " * (width * at) + f"^ threshold {threshold:g}", markup=False)
