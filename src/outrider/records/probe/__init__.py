"""What a running server can tell of its speculation: it is asked, rung by rung of a ladder."""
