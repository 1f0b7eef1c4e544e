"""What was expected of a drafter, held against what was measured."""
