# SPDX-License-Identifier: Apache-2.0
"""launch.py mpirun|mpiexec|srun|torchrun|addresses|nodes COUNT COMMAND...: runs COUNT processes with the variables that
this launcher sets; `addresses` are mpirun's on two hosts, and where the first is, `nodes` srun's on two hosts. Prints
what each wrote and its exit code; ends with the first code that is not 0."""
import os
import random
import socket
import subprocess
import sys

LIMIT = 60  # seconds after which a command hangs

launcher, count, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


def free_port():
    """One that nobody has, and that the kernel gives to no connection in between."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as drawn:
        below = int(drawn.read().split()[0])
    while True:
        port = random.randrange(1024, below)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


port = free_port()


def variables(rank):
    return {
        "mpirun": {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": count, "OMPI_COMM_WORLD_LOCAL_RANK": rank,
                   "OMPI_COMM_WORLD_LOCAL_SIZE": count,
                   "PMIX_NAMESPACE": f"job-{os.getpid()}"},
        "mpiexec": {"PMI_RANK": rank, "PMI_SIZE": count, "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": count},
        "srun": {"SLURM_PROCID": rank, "SLURM_NTASKS": count, "SLURM_LOCALID": rank, "SLURM_NNODES": 1,
                 "SLURM_JOB_ID": os.getpid(), "SLURM_STEP_ID": 0},
        "nodes": {"SLURM_PROCID": rank, "SLURM_NTASKS": count, "SLURM_LOCALID": rank, "SLURM_NNODES": 2,
                  "SLURM_STEP_NODELIST": "localhos[t,u]", "SLURM_JOB_ID": port + 10000, "SLURM_STEP_ID": 0,
                  "MTC_SECRET": f"a secret of {os.getpid()} here"},
        "torchrun": {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count,
                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                     "TORCHELASTIC_USE_AGENT_STORE": "True"},
        "addresses": {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": count, "OMPI_COMM_WORLD_LOCAL_RANK": rank,
                      "OMPI_COMM_WORLD_LOCAL_SIZE": 1,
                      "MASTER_ADDR": "localhost", "MASTER_PORT": port, "MTC_SECRET": f"a secret of {os.getpid()} here"},
    }[launcher]


processes = [subprocess.Popen(command, env={**os.environ, **{k: str(v) for k, v in variables(rank).items()}},
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) for rank in range(count)]
codes = []
for rank, process in enumerate(processes):
    try:
        text = process.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        text = f"hung, more than {LIMIT} s\n"
    codes.append(process.returncode)
    print(f"{launcher} {rank}: exit code {process.returncode}\n{text}", end="")
sys.exit(next((code for code in codes if code), 0))
