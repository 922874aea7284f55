# SPDX-License-Identifier: Apache-2.0
"""events.py FOLDER: reads event files byte by byte, with all checksums, and prints what they hold: scalars, histograms,
graph, text. It knows the two formats, records and protocol buffers, from their descriptions alone."""
import glob
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return ~crc & 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked(data[:8]), "the checksum of a length"
        event = data[12 : 12 + length]
        assert struct.unpack("<I", data[12 + length : 16 + length])[0] == masked(event), "the checksum of an event"
        data = data[16 + length :]
        yield fields(event)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Field number: the values, in order."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                assert key & 7 == 2, key
                size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        found.setdefault(key >> 3, []).append(value)
    return found


def doubles(data):
    return struct.unpack(f"<{len(data) // 8}d", data)


for part in ("train", "validation"):
    (path,) = glob.glob(os.path.join(sys.argv[1], part, "events.out.tfevents.*"))
    with open(path, "rb") as file:
        events = list(records(file.read()))
    assert events[0][3] == [b"brain.Event:2"], events[0]
    for event in events[1:]:
        step = event.get(2, [0])[0]
        if 4 in event:
            nodes = [fields(node) for node in fields(event[4][0])[1]]
            names = [node[1][0].decode() for node in nodes]
            assert len(set(names)) == len(names)
            for place, node in enumerate(nodes):
                assert all(name.decode() in names[:place] for name in node.get(3, [])), node
            print(part, "graph", *(f"{n[1][0].decode()}={n[2][0].decode()}({len(n.get(3, []))})" for n in nodes))
            continue
        value = fields(fields(event[5][0])[1][0])
        tag = value[1][0].decode()
        if 2 in value:
            print(part, step, tag, f"{struct.unpack('<f', value[2][0])[0]:.4f}")
        elif 5 in value:
            h = {number: doubles(v[0]) for number, v in fields(value[5][0]).items()}
            assert len(h[6]) == len(h[7]) and sum(h[7]) == h[3][0] and list(h[6]) == sorted(h[6]), h
            assert h[1][0] <= h[6][0] and h[6][-1] == h[2][0] and h[5][0] * h[3][0] >= h[4][0] ** 2 * 0.999, h
            print(part, step, tag, "histogram", int(h[3][0]), len(h[7]))
        else:
            text, meta = fields(value[8][0]), fields(value[9][0])
            assert text[1] == [7] and fields(meta[1][0])[1] == [b"text"], value
            print(part, step, tag, "text", text[8][0].decode().replace("\n", "\\n"))
