"""Prefixes: keys and values of what conversations have said so far, so that their next prompts need not be read again.

Needs torch and transformers. A row of a batch is kept by reference to the batch it was computed in, and gathered when
its conversation goes on: nothing is copied for conversations that are over.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache

__all__ = ["Batch", "Prefixes", "Row", "gathered"]

Ids = tuple[int, ...]


class Batch:
    """Keys and values of several sequences: [rows, heads, columns, size] each, a pair for each layer."""

    def __init__(self, layers: list[tuple[torch.Tensor, torch.Tensor]], mask: torch.Tensor) -> None:
        """`mask`: [rows, columns], 1 where a column is a token of the row."""
        self.layers = layers
        self.columns = mask.argsort(dim=1, descending=True, stable=True)  # those of tokens first, in order
        self.users = 0
        self.bytes = sum(k.nbytes + v.nbytes for k, v in layers)


class Row(NamedTuple):
    """One sequence of a batch, or the beginning of it."""

    batch: Batch
    at: int
    ids: Ids
    """Its tokens, as many as are to be used."""


class Prefixes:
    """The last rows of conversations, up to so many bytes; the longest unused go first."""

    def __init__(self, most: int) -> None:
        self.most, self.bytes = most, 0
        self._rows: OrderedDict[str, Row] = OrderedDict()

    def longest(self, key: str, prompt: Ids) -> Row | None:
        """What is known of a conversation's prompt, at least one token less than all of it."""
        row = self._rows.get(key)
        if row is None:
            return None
        self._rows.move_to_end(key)
        most = min(len(row.ids), len(prompt) - 1)
        if row.ids[:most] == prompt[:most]:
            return row._replace(ids=row.ids[:most])
        shared = next(at for at in range(most) if row.ids[at] != prompt[at])
        return row._replace(ids=row.ids[:shared]) if shared else None

    def keep(self, key: str, row: Row) -> None:
        """Keep a row in place of the one before it."""
        if not self.most or not key:
            return
        if not row.batch.users:
            self.bytes += row.batch.bytes
        row.batch.users += 1
        self._drop(key)
        self._rows[key] = row
        while self.bytes > self.most and self._rows:
            self._drop(next(iter(self._rows)))

    def _drop(self, key: str) -> None:
        row = self._rows.pop(key, None)
        if row is not None:
            row.batch.users -= 1
            if not row.batch.users:
                self.bytes -= row.batch.bytes

    def forget(self) -> None:
        """Let go of all of it: the weights have changed."""
        self._rows.clear()
        self.bytes = 0


def gathered(rows: Sequence[Row | None], like: Batch, config: Any) -> tuple[DynamicCache, torch.Tensor]:
    """A cache that holds these rows (None: nothing yet), padded on the left, and its mask. `like`: any batch."""
    lengths = torch.tensor([len(row.ids) if row is not None else 0 for row in rows])
    width, device = int(lengths.max()), like.columns.device
    mask = (torch.arange(width)[None] >= width - lengths[:, None]).long().to(device)
    sources: dict[int, tuple[Batch, list[int]]] = {}
    for target, row in enumerate(rows):
        if row is not None:
            sources.setdefault(id(row.batch), (row.batch, []))[1].append(target)
    taken = []
    for batch, targets in sources.values():
        at = torch.tensor([row.at for target in targets if (row := rows[target]) is not None], device=device)
        shift = torch.arange(width)[None] - (width - lengths[targets][:, None])
        columns = batch.columns[at].gather(1, shift.clamp(min=0).to(device))
        taken.append((batch, torch.tensor(targets, device=device), at, columns))
    cache = DynamicCache(config=config)
    for number, layer in enumerate(like.layers):
        pair = []
        for part, tensor in enumerate(layer):
            made = tensor.new_zeros(len(rows), tensor.shape[1], width, tensor.shape[3])
            for batch, places, at, columns in taken:
                source = batch.layers[number][part].index_select(0, at)
                index = columns[:, None, :, None].expand(-1, source.shape[1], -1, source.shape[3])
                made[places] = source.gather(2, index)
            pair.append(made)
        cache.update(*pair, number)
    return cache, mask
