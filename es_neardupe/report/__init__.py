"""What people look at: two texts cut into passages and changes, as rows for a terminal and as a page."""
