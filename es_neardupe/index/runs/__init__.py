"""How a run that writes behaves: its lease, and the settings that it lowers."""
