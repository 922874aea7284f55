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


def run(root, *words, user="0", folder="/", **environment):
    """Runs a command in it, with processes and an environment of its own. The root need not have a shell."""
    variables = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8",
                 "PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin", **environment}
    subprocess.run(["unshare", "--mount", "--pid", "--fork", "--mount-proc=/proc", f"--root={root}",
                    f"--wd={folder}", f"--setuid={user}", f"--setgid={user}", *words], check=True, env=variables)
