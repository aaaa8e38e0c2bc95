"""_interim.py - frames and bytes by temporary files, for a library without stretto_frame_new."""
import ctypes
import itertools
import os
import tempfile

folder = tempfile.mkdtemp(prefix="stretto-")
numbers = itertools.count(1)
kept = {}


def patch(c):
    import numpy as np
    from . import arrow_c, columns

    def frame_new(stream, label, out):
        import pyarrow as pa
        table = pa.RecordBatchReader._import_from_c(stream).read_all()
        n = next(numbers)
        path = "%s/%d.arrows" % (folder, n)
        with pa.OSFile(path, "wb") as f, pa.ipc.new_stream(f, table.schema) as w:
            w.write_table(table)
        kept[n] = path.encode()
        out._obj.value = n
        return 0

    def frame_free(h):
        if h:
            os.unlink(kept.pop(h))

    def model_to_bytes(m, out, size):
        path = "%s/%d.model" % (folder, next(numbers))
        r = c.stretto_model_save(m, path.encode())
        if r < 0:
            return r
        with open(path, "rb") as f:
            b = f.read()
        buf = ctypes.create_string_buffer(b, len(b))
        out._obj.value, size._obj.value = ctypes.addressof(buf), len(b)
        kept[ctypes.addressof(buf)] = buf
        return 0

    def model_from_bytes(b, n, out):
        path = "%s/%d.model" % (folder, next(numbers))
        with open(path, "wb") as f:
            f.write(b)
        return c.stretto_model_load(path.encode(), out)

    def predict_arrow(m, d, samples, seed, array, schema):
        out = ctypes.c_void_p()
        r = (c.stretto_sample_file(m, d, b"-", samples, seed, ctypes.byref(out)) if samples else
             c.stretto_predict_file(m, d, b"-", 0, ctypes.byref(out)))
        if r < 0:
            return r
        text = ctypes.string_at(out.value).decode()
        c.stretto_text_free(out)
        head, *lines = [l.split(",") for l in text.splitlines()]
        cols = []
        for k, name in enumerate(head):
            cells = [l[k] for l in lines]
            if name in ("time", "origin"):
                v = np.array(cells, "datetime64[s]")
            else:
                try:
                    v = np.array([float(x or "nan") for x in cells])
                except ValueError:
                    v = np.array(cells, object)
            cols.append(columns.array_column(name, v) if v.dtype != object else arrow_c.text_column(name, cells))
        arrow_c.fill_schema(arrow_c.Schema.from_address(schema), arrow_c.Column("", "+s", 0, [None]), cols)
        arrow_c.fill_array(arrow_c.ArrayC.from_address(array), arrow_c.Column("", "+s", len(lines), [None]), cols)
        return 0

    c.stretto_frame_new, c.stretto_frame_free = frame_new, frame_free
    c.stretto_frame_path = lambda h: kept[h]
    c.stretto_model_to_bytes, c.stretto_bytes_free = model_to_bytes, lambda p: kept.pop(p.value, None)
    c.stretto_model_from_bytes, c.stretto_predict_arrow = model_from_bytes, predict_arrow
