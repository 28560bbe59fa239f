"""Arrays that a traced function writes to."""
