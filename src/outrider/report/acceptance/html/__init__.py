"""The report as one page that opens offline."""
