"""Readers of documents from files, folders, tables and URLs."""
