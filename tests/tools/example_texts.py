"""Worked examples of "What is a near-dupe, really?" (Bill Dimm), which shows its texts as pictures.

These texts have the fragments, lengths and common passages that the article states.
"""

from __future__ import annotations

_BEFORE = (
    "It is important to use available technologies to find the documents that matter in a lawsuit before anyone is "
    "paid to read all of them. A program can put messages that are almost equal beside each other, so reviewers need"
)
_AFTER = (
    "look only at the few words in which they differ and never read a long letter again and again. Savings of a "
    "third are usual, and they grow with each answer that quotes the whole of a message. Our host, the author of "
    "this article,"
)

LEFT_1 = f"{_BEFORE} too {_AFTER} is a partner at one LLP and an expert on ediscovery."
RIGHT_1 = f"{_BEFORE} to {_AFTER} has six years of experience in the review of electronic mail for courts abroad."
"""Example 1: L = 100, S = 97, two common passages with C = 85, one word between them changed."""

LEFT_2 = "Predictive coding uses machine learning to sort documents the way they were sorted by human reviewers."
RIGHT_2 = f"{LEFT_2} {LEFT_2}"
"""Example 2: 16 words, and the same text twice."""

LEFT_3 = "I will need money and cigars for the mayor"
RIGHT_3 = "I will need money and a car and cigars for the mayor and his wife"
"""Example 3: 9 and 15 words; two passages of five words, which overlap in the shorter text."""

LEFT_4 = "Did you rob the bank?"
RIGHT_4 = "> Did you rob the bank?\nYes"
"""Example 4: a mail of five words, and its reply."""

EXAMPLES = {1: (LEFT_1, RIGHT_1), 2: (LEFT_2, RIGHT_2), 3: (LEFT_3, RIGHT_3), 4: (LEFT_4, RIGHT_4)}
