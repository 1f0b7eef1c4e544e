"""What to do about it: arms compared, a finding for each segment, and the lines to deploy it."""
