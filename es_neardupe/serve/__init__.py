"""Web application to review the groups of an index, with an HTTP interface for programs: see `es_neardupe.asgi`.

Needs the extra ``[serve]``.
"""
