"""Writes that are about to be sent: their keys, their first groups, and their matches."""
