"""weights.py - the tensors of a model file (safetensors) as NumPy views of its bytes."""
from __future__ import annotations

import json
import struct

import numpy as np

from .arrow_c import Array

Weights = dict[str, Array]
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1",
         "U16": "<u2", "U32": "<u4", "U64": "<u8", "BOOL": "|b1"}


def read_weights(content: bytes) -> Weights:
    """Tensors by name; bfloat16 ones come as the upper 16 bits of float32.  The views are read-only and keep the bytes alive."""
    size, = struct.unpack_from("<Q", content)
    head = json.loads(content[8:8 + size])
    found: Weights = {}
    for name, tensor in head.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            dtype = np.dtype(TYPES[tensor["dtype"]])
            flat = np.frombuffer(content, dtype, (end - begin) // dtype.itemsize, 8 + size + begin)
            found[name] = flat.reshape(tensor["shape"])
    return found
