"""The report of a run that was measured here: arms compared, findings, deployment."""
