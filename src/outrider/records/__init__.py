"""What was measured, where and how: the record types and the file that keeps them."""
