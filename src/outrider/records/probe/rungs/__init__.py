"""The places where a server may tell of its speculation, one file each."""
