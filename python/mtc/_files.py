# SPDX-License-Identifier: Apache-2.0
"""Files that are there as a whole or not at all.

A file has no name until it is whole, so that a process that is killed leaves nothing. A link cannot replace a file:
where there is one of the name, the new file is linked under another name first and renamed at once. A file system that
has no files without names, or does not link them, gets a file with that other name from the beginning.
"""

from __future__ import annotations

import os
import secrets


def write(holder: int, name: str, data: bytes, mode: int) -> None:
    """Writes a file into the folder of the descriptor `holder`, with the permissions `mode` but for the umask."""
    temporary = f".{name}.{os.getpid()}-{secrets.token_hex(4)}"
    try:
        descriptor = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, mode, dir_fd=holder)
    except OSError:
        return _write_named(holder, name, temporary, data, mode)
    try:
        _write_all(descriptor, data)
        if not _link(descriptor, holder, name, temporary):
            _write_named(holder, name, temporary, data, mode)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.fsync(descriptor)


def _link(descriptor: int, holder: int, name: str, temporary: str) -> bool:
    """Gives a file without a name its name; False: that does not work here."""
    unnamed = f"/proc/self/fd/{descriptor}"
    try:
        os.link(unnamed, name, dst_dir_fd=holder, follow_symlinks=True)
        return True
    except FileExistsError:
        os.link(unnamed, temporary, dst_dir_fd=holder, follow_symlinks=True)
    except OSError:
        return False
    _rename(holder, temporary, name)
    return True


def _write_named(holder: int, name: str, temporary: str, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode, dir_fd=holder)
    try:
        _write_all(descriptor, data)
    except BaseException:
        os.unlink(temporary, dir_fd=holder)
        raise
    finally:
        os.close(descriptor)
    _rename(holder, temporary, name)


def _rename(holder: int, temporary: str, name: str) -> None:
    try:
        os.replace(temporary, name, src_dir_fd=holder, dst_dir_fd=holder)
    except BaseException:
        os.unlink(temporary, dir_fd=holder)
        raise
