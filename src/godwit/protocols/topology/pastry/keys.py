"""Names on the ring: 128 bits, compared as numbers around a circle, read as digits from the left.

On the wire a key is 16 bytes; arithmetic is done with its number.
"""

from __future__ import annotations

BITS = 128
BYTES = BITS // 8
RING = 1 << BITS

Key = bytes


def number_of(key: Key) -> int:
    return int.from_bytes(key, "big")


def key_of(number: int) -> Key:
    return number.to_bytes(BYTES, "big")


def padded(prefix: str) -> Key:
    """The key that begins with these bits and has nothing but zeros after them."""
    return key_of(int(prefix, 2) << (BITS - len(prefix)) if prefix else 0)


def bits_of(key: Key, count: int = BITS) -> str:
    return format(number_of(key), f"0{BITS}b")[:count]


def starts_with(number: int, prefix: str) -> bool:
    return not prefix or number >> (BITS - len(prefix)) == int(prefix, 2)


def apart(a: int, b: int) -> int:
    """The distance the shorter way around."""
    way = abs(a - b)
    return min(way, RING - way)


def common_bits(a: int, b: int) -> int:
    return BITS - (a ^ b).bit_length()


def digit(number: int, row: int, bits: int) -> int:
    return number >> (BITS - bits * (row + 1)) & ((1 << bits) - 1)


def brief(key: Key) -> str:
    """For people: the bits up to the last one that is set, four at least."""
    return bits_of(key).rstrip("0").ljust(4, "0")
