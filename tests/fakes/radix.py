"""Which prefixes the server has seen: a radix tree over token ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """The edge that leads here, and what follows."""

    edge: tuple[int, ...]
    children: "dict[int, Node]" = field(default_factory=dict)


class RadixCache:
    """Prefixes of everything inserted since the last flush."""

    def __init__(self) -> None:
        self.root = Node(())

    def flush(self) -> None:
        """Forget all."""
        self.root = Node(())

    def insert(self, ids: Sequence[int]) -> None:
        """Remember a sequence and all its prefixes."""
        rest, node = tuple(ids), self.root
        while rest:
            child = node.children.get(rest[0])
            if child is None:
                node.children[rest[0]] = Node(rest)
                return
            same = common(child.edge, rest)
            if same < len(child.edge):
                child = self._split(node, child, same)
            rest, node = rest[same:], child

    def longest(self, ids: Sequence[int]) -> int:
        """How many of the first ids are known."""
        rest, node, known = tuple(ids), self.root, 0
        while rest and (child := node.children.get(rest[0])) is not None:
            same = common(child.edge, rest)
            known += same
            if same < len(child.edge):
                break
            rest, node = rest[same:], child
        return known

    def _split(self, parent: Node, child: Node, at: int) -> Node:
        upper = Node(child.edge[:at], {child.edge[at]: child})
        parent.children[child.edge[0]] = upper
        child.edge = child.edge[at:]
        return upper


def common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Length of the common prefix."""
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    return next(at for at in range(size) if a[at] != b[at])
