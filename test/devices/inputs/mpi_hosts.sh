#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mpi_hosts.sh HOSTS COMMAND...: runs a command with Open MPI in one process on each of HOSTS hosts, which are network
# namespaces that a bridge connects. They have one file system, a /dev/shm each, and no address of the loopback device
# in common. With CUT=FILE in the environment mtrun supervise starts the launcher, and the link of the last host is set
# down when FILE exists; FILE.ended then gets the seconds until no process of mtrun is left on this host.
set -euo pipefail
hosts=$1
shift
name=mtc$$ # of devices and namespaces; at most 15 bytes with a suffix
work=$(mktemp -d)
clean() {
  for host in $(seq "$hosts"); do
    ip netns pids "$name-$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
    ip netns del "$name-$host" 2>/dev/null || true
  done
  ip link del "$name" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
ip link add "$name" type bridge
ip link set "$name" up
addresses=
for host in $(seq "$hosts"); do
  ip netns add "$name-$host"
  ip link add "$name.$host" type veth peer name eth0 netns "$name-$host"
  ip link set "$name.$host" master "$name" up
  ip -n "$name-$host" address add "10.77.0.$host/24" dev eth0
  ip -n "$name-$host" link set eth0 up
  ip -n "$name-$host" link set lo up
  mkdir "$work/$host"
  addresses+=${addresses:+,}10.77.0.$host
done
# In place of ssh: the last number of the address is the host's.
cat > "$work/agent" <<END
#!/bin/bash
host=\$1
shift
exec ip netns exec $name-\${host##*.} bash -c "mount --bind $work/\${host##*.} /dev/shm; \$*"
END
chmod +x "$work/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cut() {
  while [ ! -e "$CUT" ]; do sleep 0.1; done
  ip -n "$name-$hosts" link set eth0 down
  begin=$(date +%s)
  while ip netns pids "$name-$hosts" | xargs -r ps -o comm= -p | grep -q mtrun; do sleep 0.2; done
  echo $(($(date +%s) - begin)) > "$CUT.ended"
}
supervise=()
if [ -n "${CUT-}" ]; then
  supervise=(mtrun supervise --)
  cut &
fi
# Now and then the daemon of a host does not come up, and Open MPI waits for it.
timeout -k 5 120 ip netns exec "$name-1" bash -c "mount --bind $work/1 /dev/shm; exec \"\$@\"" bash \
  "${supervise[@]}" mpirun.openmpi --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 \
  --mca routed direct --mca btl tcp,self \
  --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --bind-to none --host "$addresses" "$@"
