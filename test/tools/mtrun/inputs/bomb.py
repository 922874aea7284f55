# SPDX-License-Identifier: Apache-2.0
"""bomb.py FILE.npz: one member, which 500 entries of the directory name."""
import io
import struct
import sys
import zipfile

from arrays import npy

buffer = io.BytesIO()
with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("x000.npy", npy("|u1", (4000000,), b"")[:128] + bytes(4000000))
data = buffer.getvalue()
end = data.rindex(b"PK\x05\x06")
(size, at) = struct.unpack_from("<II", data, end + 12)
entry = data[at : at + size]
entries = [entry.replace(b"x000", b"x%03d" % i) for i in range(500)]
directory = b"".join(entries)
tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 500, 500, len(directory), at, 0)
open(sys.argv[1], "wb").write(data[:at] + directory + tail)
