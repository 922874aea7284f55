# SPDX-License-Identifier: Apache-2.0
"""Writes a copy of a Keras archive, changed: pack.py FROM TO PYTHON, a statement in which `members` are the names and
bytes."""
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    members = {i.filename: archive.read(i) for i in archive.infolist()}
links, extra = set(), []
exec(sys.argv[3])
with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in [*members.items(), *extra]:
        info = zipfile.ZipInfo(name)
        info.create_system = 3
        info.external_attr = (0o120777 if name in links else 0o100644) << 16
        archive.writestr(info, data, zipfile.ZIP_DEFLATED)
