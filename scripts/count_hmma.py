#!/usr/bin/env python3
"""Counts the HMMA.884 instructions of each kernel in sm_70 machine code; fails if a kernel has none.

usage: count_hmma.py CUBIN

Volta's instructions are 16 bytes, and the low 12 bits of the first word are the operation: 0x236 is HMMA.884, as
nvdisasm of CUDA 12.8 prints it. A parser of its own, because disassemblers of later toolkits refuse sm_70.
"""
import struct
import sys

INSTRUCTION_BYTES = 16
OPERATION_BITS = 0xFFF
HMMA_884 = 0x236
MACHINE_CUDA = 190


def sections(image):
    """Name and contents of each section of a 64-bit little-endian ELF file."""
    if image[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", image, 18)[0] != MACHINE_CUDA:
        sys.exit(f"{sys.argv[1]}: not CUDA machine code")
    table, = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQ", image, table + index * size) for index in range(count)]
    name_table = headers[names][4]
    for name, _, _, _, offset, length in headers:
        start = name_table + name
        yield image[start:image.index(b"\0", start)].decode(), image[offset:offset + length]


def count(code):
    words = (struct.unpack_from("<Q", code, at)[0] for at in range(0, len(code), INSTRUCTION_BYTES))
    return sum(word & OPERATION_BITS == HMMA_884 for word in words)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as file:
        image = file.read()
    architecture = struct.unpack_from("<I", image, 48)[0] & 0xFF
    if architecture != 70:
        sys.exit(f"{sys.argv[1]}: code of sm_{architecture}, not sm_70")
    kernels = {name[len(".text."):]: count(code) for name, code in sections(image) if name.startswith(".text.")}
    for name, found in kernels.items():
        print(f"{found:4} HMMA.884  {name}")
    if not kernels or 0 in kernels.values():
        sys.exit(f"{sys.argv[1]}: a kernel without HMMA.884")


if __name__ == "__main__":
    main()
