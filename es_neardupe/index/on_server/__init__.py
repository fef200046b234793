"""What the server itself does: pipelines, scripts, folding."""
