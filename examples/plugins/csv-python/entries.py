"""Reads a batch entry by entry."""

from dataclasses import dataclass
from typing import Iterator, Union

from wit_world.imports.journal import Batch, ValueKind


@dataclass
class Entry:
    """One entry of a batch."""

    sequence: int
    """its number; with the batch's journal it names the entry for ever"""
    at: int
    """when it was written, in milliseconds since the Unix epoch"""
    kind: str
    """its kind, such as `transition`"""
    fields: dict[str, Union[str, float]]
    """what it says, by name: a text, or a number whose meaning wit/latido.wit has"""


def entries(batch: Batch) -> Iterator[Entry]:
    """Goes through a batch, the oldest entry first."""
    texts, numbers, field = iter(batch.texts.split("\0")), iter(batch.numbers), iter(batch.field)
    for at, sequence in enumerate(batch.sequences):
        says = {}
        for _ in range(batch.fields_of[at]):
            known = batch.fields[next(field)]
            says[known.name] = next(texts) if known.holds == ValueKind.TEXT else next(numbers)
        yield Entry(sequence, batch.times[at], batch.kinds[batch.kind_of[at]], says)
