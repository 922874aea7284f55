# SPDX-License-Identifier: Apache-2.0
"""A bare Debian 12 in a folder, with the network of this machine. Needs root and mmdebstrap."""
import pathlib
import shutil
import subprocess

MIRROR = "http://deb.debian.org"
SOURCES = [f"deb {MIRROR}/debian bookworm main", f"deb {MIRROR}/debian-security bookworm-security main"]


def make(root, *options):
    """Makes the folder `root`. It has apt, and neither a compiler nor Python. `options` are of mmdebstrap."""
    subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", *options, "bookworm", root, *SOURCES], check=True)
    for file in pathlib.Path("/etc/resolv.conf"), *pathlib.Path("/etc/apt/apt.conf.d").glob("*prox*"):
        shutil.copy(file, root / str(file).lstrip("/"))


def run(root, *words, user="root"):
    """Runs a command in it, with processes and an environment of its own."""
    subprocess.run(["unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot",
                    f"--userspec={user}:{user}", root, "env", "-i", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8",
                    "PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin", *words], check=True)
