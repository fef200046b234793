"""The mean similarity of the members of groups to their principals."""

from __future__ import annotations

import random

from es_neardupe.groups.registry import mean_similarity


def test_equal_similarities_are_their_mean() -> None:
    """The sum of three of these is rounded so that a third of it is less."""
    value = 0.8360655737704918
    assert sum([value] * 3) / 3 < value
    assert mean_similarity([value] * 3, [1, 1, 1]) == mean_similarity([value], [3]) == value


def test_the_order_of_members_changes_no_digit() -> None:
    """Servers return members in any order, and a changed digit would be a changed record."""
    draw = random.Random(1)
    values = [draw.uniform(0.8, 1) for _ in range(50)]
    means = {mean_similarity(draw.sample(values, len(values)), [1] * len(values)) for _ in range(50)}
    assert len(means) == 1
