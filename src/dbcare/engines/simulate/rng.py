"""Random numbers for the compiled engines: xoshiro256++ and a 256-layer ziggurat.

The generator (Blackman and Vigna 2021) has four words of state, passed and returned by value so that they stay in
registers. Each run has its own stream, seeded by SplitMix64 from (seed, run number), so results are identical to the
bit for any number of threads. Gaussians use the ziggurat method (Marsaglia and Tsang 2000): one 64-bit word and one
multiplication in 98.8% of all draws.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from dbcare.engines.kernels.compile import OPTIONS
from dbcare.policies.rule import TIE_MODULUS

INLINE: dict[str, Any] = OPTIONS | {"forceinline": True}  # by LLVM: numba would infer types again for every call

LAYERS = 256
TAIL = 3.6541528853610088  # right edge of the lowest of 256 layers of equal area


def _layers() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    density = math.exp(-0.5 * TAIL * TAIL)
    area = TAIL * density + math.sqrt(math.pi / 2.0) * math.erfc(TAIL / math.sqrt(2.0))
    edges = [area / density, TAIL]
    for _ in range(2, LAYERS):
        edges.append(math.sqrt(-2.0 * math.log(area / edges[-1] + math.exp(-0.5 * edges[-1] ** 2))))
    edges.append(0.0)
    right = np.array(edges)
    return right, np.exp(-0.5 * right**2)


EDGES, HEIGHTS = _layers()
# What a draw needs from its layer, side by side: the width of one unit of the random word, and the square of the inner
# box's right edge. All in one table, because in a crowded loop every further address would cost an instruction.
TABLE = np.column_stack([EDGES[:LAYERS] / 2.0**63, EDGES[1:] ** 2]).ravel()


@njit(**INLINE)
def next_word(s0, s1, s2, s3):
    """Return the next 64 random bits and the new state."""
    total = s0 + s3
    word = ((total << uint64(23)) | (total >> uint64(41))) + s0
    shifted = s1 << uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << uint64(45)) | (s3 >> uint64(19))
    return word, s0, s1, s2, s3


@njit(**INLINE)
def uniform(s0, s1, s2, s3):
    """Draw a number strictly between 0 and 1, with 52 random bits."""
    word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    return (float(word >> uint64(12)) + 0.5) * 2.0**-52, s0, s1, s2, s3


@njit(**INLINE)
def mixed(x):
    """Apply SplitMix64's finalizer."""
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


@njit(**INLINE)
def stream(seed, run):
    """Return the generator of one run: SplitMix64 started at a point mixed from seed and run number."""
    step = uint64(0x9E3779B97F4A7C15)
    start = mixed(mixed(uint64(seed) + step) + uint64(run) * step + step)
    return mixed(start + step), mixed(start + step * uint64(2)), mixed(start + step * uint64(3)), mixed(start)


@njit(**INLINE)
def begun(seed, run):
    """Return a run's tie-breaking seed, taken from the first word of its stream, and the generator after that word."""
    s0, s1, s2, s3 = stream(seed, run)
    word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    return 1 + int(word % uint64(TIE_MODULUS - 1)), s0, s1, s2, s3


@njit(**OPTIONS)
def beyond_layer(layer, x, s0, s1, s2, s3):
    """Handle the ziggurat's rare case: `x` fell outside the inner box of its layer."""
    while True:
        if layer == 0:
            while True:
                u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
                v, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
                over = -math.log(u) / TAIL
                if -2.0 * math.log(v) >= over * over:
                    return math.copysign(TAIL + over, x), s0, s1, s2, s3
        u, s0, s1, s2, s3 = uniform(s0, s1, s2, s3)
        if HEIGHTS[layer + 1] + u * (HEIGHTS[layer] - HEIGHTS[layer + 1]) < math.exp(-0.5 * x * x):
            return x, s0, s1, s2, s3
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        layer = np.int64(word & uint64(LAYERS - 1))
        x = np.float64(np.int64(word)) * TABLE[2 * layer]
        if x * x < TABLE[2 * layer + 1]:
            return x, s0, s1, s2, s3


@njit(**INLINE)
def normal(s0, s1, s2, s3):
    """Draw a standard normal number; return it and the new state."""
    word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    layer = np.int64(word & uint64(LAYERS - 1))
    x = np.float64(np.int64(word)) * TABLE[2 * layer]
    if x * x >= TABLE[2 * layer + 1]:
        x, s0, s1, s2, s3 = beyond_layer(layer, x, s0, s1, s2, s3)
    return x, s0, s1, s2, s3


@njit(**INLINE)
def normal_at(key, place):
    """Return the standard normal number at a place of a sequence; `key`, a whole number below 2^53, selects that."""
    step = uint64(0x9E3779B97F4A7C15)
    word = mixed((uint64(np.int64(key)) << uint64(11)) + uint64(place + 1) * step)
    layer = np.int64(word & uint64(LAYERS - 1))
    x = np.float64(np.int64(word)) * TABLE[2 * layer]
    if x * x >= TABLE[2 * layer + 1]:
        s0, s1, s2, s3 = stream(word, place)
        x, s0, s1, s2, s3 = beyond_layer(layer, x, s0, s1, s2, s3)
    return x
