"""Preparation of texts before they are normalised: what is not the text's own is left out, by frozen rules.

`docs/scheme.md` lists the rules, and `docs/prepare.md` says why each was chosen. They are part of the scheme, so none
of them ever changes: another rule has another name.
"""
