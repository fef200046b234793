"""What a user lacks, in the words of the server's refusal."""

from __future__ import annotations

import re

__all__ = ["lacking"]

_ELASTICSEARCH = re.compile(
    r"action \[(?P<action>.+?)\] is unauthorized for (?P<who>.+?)"
    r"(?: with effective roles \[[^\]]*\]| with assigned roles \[[^\]]*\])?"
    r"(?: on (?:restricted )?indices \[(?P<indices>[^\]]+)\])?"
    r", this action is granted by the (?P<scope>index|cluster) privileges \[(?P<names>[^\]]+)\]"
)
_OPENSEARCH = re.compile(r"no permissions for \[(?P<action>[^\]]+)\] and User \[name=(?P<who>[^,\]]+)")

_OURS = {
    "cluster": ("monitor",),
    "index": (
        *("read", "view_index_metadata", "index", "maintenance"),
        *("create_index", "delete", "delete_index", "manage"),
    ),
}
"""The privileges that docs/roles.md grants: of several that would do, the first of these is named."""


def lacking(reason: str) -> str:
    """Who lacks which privilege, in one sentence; empty where the refusal does not tell."""
    if found := _ELASTICSEARCH.search(reason):
        names = [name.strip() for name in found["names"].split(",")]
        named = next((one for one in _OURS[found["scope"]] if one in names), names[0])
        place = f" on {found['indices']}" if found["indices"] else ""
        return f"{_who(found['who'])} lacks the {found['scope']} privilege '{named}'{place} ({found['action']})."
    if found := _OPENSEARCH.search(reason):
        return f"{found['who']} lacks the permission '{found['action']}'."
    return ""


def _who(text: str) -> str:
    """``user [anna]`` is anna; an API key is told with its id and its user."""
    only = re.fullmatch(r"user \[([^\]]+)\]", text)
    return only[1] if only else text.replace("[", "").replace("]", "")
