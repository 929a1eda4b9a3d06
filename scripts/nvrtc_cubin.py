#!/usr/bin/env python3
"""Compiles one CUDA file to machine code with a given NVRTC library and names the kernels to instantiate.

usage: nvrtc_cubin.py LIBNVRTC SOURCE OUTPUT ARCHITECTURE KERNEL...
"""
import ctypes
import sys


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
        self.program = ctypes.c_void_p()

    def call(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        return None if status == 0 else self.library.nvrtcGetErrorString(status).decode()

    def require(self, function, *arguments):
        if error := self.call(function, *arguments):
            sys.exit(f"nvrtc_cubin.py: {function}: {error}")

    def bytes_of(self, what):
        size = ctypes.c_size_t()
        self.require(f"nvrtcGet{what}Size", self.program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self.require(f"nvrtcGet{what}", self.program, text)
        return text.raw

    def compile(self, source, options, kernels):
        with open(source, "rb") as file:
            text = file.read()
        self.require("nvrtcCreateProgram", ctypes.byref(self.program), text, source.encode(), 0, None, None)
        for kernel in kernels:
            self.require("nvrtcAddNameExpression", self.program, kernel.encode())
        array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        error = self.call("nvrtcCompileProgram", self.program, len(options), array)
        log = self.bytes_of("ProgramLog").rstrip(b"\0").decode().strip()
        if error:
            sys.exit(f"{source}: {error}\n{log}")
        return self.bytes_of("CUBIN")


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    library, source, output, architecture = sys.argv[1:5]
    options = [f"--gpu-architecture={architecture}", "--std=c++17"]
    code = Nvrtc(library).compile(source, options, sys.argv[5:])
    with open(output, "wb") as file:
        file.write(code)


if __name__ == "__main__":
    main()
