"""The same findings in every form that they are read in."""
