"""What drafters with a model of their own share: its cache, its passes, the draft in the making."""
