"""How weights lie in memory, one file each, and the code that reads vectors of them."""
