"""Model families: what each of their configs means, one file each."""
