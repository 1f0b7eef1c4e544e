"""A watch over acceptance: every window judged, told in lines and as JSON."""
