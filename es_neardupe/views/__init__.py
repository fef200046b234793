"""Parts of an index as the web application, the HTTP interface and agents read them, in bounded requests."""
