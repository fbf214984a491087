"""The blocks of a study: how many there are, in which order a pool is used, and what people call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dbcare.base import checks
from dbcare.base.checks import MAX_BLOCKS, show
from dbcare.errors import InvalidValueError
from dbcare.policies.breakeven.rounds import MAX_POOL_REWARDS

ORDER_STREAM = 17  # any number that no other use of a study's seed has


class BlockNames:
    """What blocks are called: by their number in the order asked, or in the order of a pool.

    Policies number blocks from 0 in the order in which arms take them. For a pool that is a random order by the seed,
    the same for all arms; its blocks have the names given, or the numbers "1", "2" and so on.
    """

    def __init__(self, blocks: int | tuple[str, ...] | None, seed: int) -> None:
        self.count = blocks if blocks is None or isinstance(blocks, int) else len(blocks)
        if self.count is None:
            return
        names = [str(number + 1) for number in range(self.count)] if isinstance(blocks, int) else list(blocks or ())
        self._names = [names[place] for place in order_blocks(self.count, seed)]
        self._numbers = {name: number for number, name in enumerate(self._names)}

    def name(self, number: int) -> str:
        """Return the name of a block, given by the policy's number for it."""
        return str(number + 1) if self.count is None else self._names[number]

    def find(self, name: Any) -> int:
        """Return the policy's number for a block of a pool, or of a round."""
        if self.count is None:
            return checks.whole("block", int(name), at_least=1) - 1
        is_number = isinstance(name, int) and not isinstance(name, bool) and abs(name) <= checks.MAX_WHOLE
        text = str(name) if is_number else name
        if not isinstance(text, str) or text not in self._numbers:
            raise InvalidValueError(f"`block` must be one of this study's {self.count:,} blocks but got {show(name)}.")
        return self._numbers[text]


def order_blocks(count: int, seed: int) -> list[int]:
    """Return the blocks of a pool in random order.

    From random bits, which every version of numpy draws alike: a stored study must find its order again.
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, ORDER_STREAM])).random_raw(count)
    order: list[int] = np.argsort(bits, kind="stable").tolist()
    return order


def check_blocks(blocks: Any, arms: int) -> int | tuple[str, ...]:
    """Return a number of blocks or their names, if they are valid for so many arms."""
    if isinstance(blocks, Sequence) and not isinstance(blocks, str | bytes):
        names = _check_names(blocks)
        checks.whole("blocks", len(names), at_least=2, at_most=MAX_BLOCKS)
        checked: int | tuple[str, ...] = names
        count = len(names)
    elif isinstance(blocks, str | bytes):
        raise InvalidValueError(f"`blocks` must be a number of blocks or a sequence of names but got {show(blocks)}.")
    else:
        checked = count = checks.whole("blocks", blocks, at_least=2, at_most=MAX_BLOCKS)
    if count * arms > MAX_POOL_REWARDS:
        raise InvalidValueError(
            f"`blocks` times arms must be at most {MAX_POOL_REWARDS:,} but got {count:,} times {arms:,}."
        )
    return checked


def _check_names(blocks: Sequence[Any]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for block in blocks:
        if (name := checks.text("blocks", block)) in names:
            raise InvalidValueError(f"`blocks` must be different names but got {name!r} twice.")
        names[name] = None
    return tuple(names)
