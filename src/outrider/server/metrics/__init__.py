"""What the server tells of itself: the /metrics page, the log, and the times of each request."""
