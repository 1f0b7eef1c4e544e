"""The blocks of a cache: which are free, how many share each, and what the finished ones hold."""


class BlockPool:
    """Hands out the numbers of `num_blocks` blocks.

    A block is named by all the tokens that lead to its end. It keeps its name when nobody holds it
    any more, so that a later sequence finds it, until it is the least recently used of the free
    blocks and another is needed.
    """

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._holders = [0] * num_blocks
        # In the order in which they became free.
        self._free = dict.fromkeys(range(num_blocks))
        self._block_of: dict[bytes, int] = {}
        self._name_of: dict[int, bytes] = {}

    @property
    def free_blocks(self) -> int:
        """How many blocks nobody holds."""
        return len(self._free)

    def take(self) -> int:
        """Return the block that has been free for longest; what it held is forgotten.

        The caller has seen to it that there is one.
        """
        block: int = next(iter(self._free))
        del self._free[block]
        name = self._name_of.pop(block, None)
        if name is not None:
            del self._block_of[name]
        self._holders[block] = 1
        return block

    def find(self, name: bytes) -> int | None:
        """Return the block with this name, held or free."""
        return self._block_of.get(name)

    def share(self, block: int) -> None:
        """Hold a block that was found."""
        self._free.pop(block, None)
        self._holders[block] += 1

    def name(self, block: int, name: bytes) -> None:
        """Let later sequences find `block`; where another has this name already, they find that."""
        if name not in self._block_of:
            self._block_of[name] = block
            self._name_of[block] = name

    def release(self, blocks: list[int]) -> None:
        """Give up a sequence's blocks, given in order; the last of them are reused first."""
        for block in reversed(blocks):
            self._holders[block] -= 1
            if not self._holders[block]:
                self._free[block] = None
