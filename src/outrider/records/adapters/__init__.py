"""One file per engine or file format that acceptance can be read from."""
