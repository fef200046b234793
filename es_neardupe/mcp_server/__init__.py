"""Tools for agents by the Model Context Protocol: see `es_neardupe.mcp_server.tools.mcp_server`.

Needs the extra ``[mcp]``.
"""
