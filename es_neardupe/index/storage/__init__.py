"""Storage of keys and groups: inline in the documents, or in a sidecar index."""
