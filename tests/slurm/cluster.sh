#!/bin/bash
# cluster.sh - a whole Slurm cluster on this host, for tests: munged, slurmctld, several slurmd, all on the loopback interface.
#
#     slurmctld :BASE   <- srun, sbatch          node1 :BASE+1   node2 :BASE+2   ...      2 cores and GPUS fake GPUs each
#
# usage: cluster.sh up DIR [NODES] [GPUS]    make DIR and start; DIR must be new or one that this script made
#        cluster.sh down DIR                 end every daemon, by its pid file
#        cluster.sh env DIR                  print what a shell must export to use it
#        cluster.sh node-up|node-down DIR NAME   start one slurmd; kill one with all its tasks, as a power cut would
# Works as root and as an ordinary user.  Installs nothing.  Exit 77: what is needed is not here.
# SLURM_BASEPORT is the first port (17000), SLURM_NODE_TIMEOUT when a silent node counts as lost (60 s),
# SLURM_REQUEUE_EXIT the exit code that repeats a job (75; "none" leaves it out), SLURM_HEALTH a health-check program and
# SLURM_HEALTH_EVERY its interval (2 s).
set -eu
usage() { sed -n '6,9s/^# //p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
command=$1
dir=$(realpath -m "$2")
nodes=${3:-3}
gpus=${4:-0}
base=${SLURM_BASEPORT:-17000}
PATH=$PATH:/usr/sbin:/sbin

mark=.made-by-cluster.sh
devices=(null zero full random urandom tty) # a fake GPU must be a character device; these need no privilege

need() {
    for tool in munged slurmctld slurmd srun sbatch sinfo scontrol; do
        command -v $tool >/dev/null || { echo "skipped: no $tool (Debian: slurmctld slurmd slurm-client munge)"; exit 77; }
    done
}

conf() {
    local host user
    host=$(hostname -s)
    user=$(id -un)
    cat <<E
ClusterName=stretto
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$base
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$dir/munge.sock,cred_expire=5
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/%n
TmpFS=$dir/%n/tmp
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
MpiDefault=none
GresTypes=gpu
ReturnToService=2
JobRequeue=1
SlurmdTimeout=${SLURM_NODE_TIMEOUT:-60}
SlurmctldTimeout=10
KillWait=2
MessageTimeout=20
MinJobAge=600
UnkillableStepTimeout=20
SlurmdParameters=config_overrides
NodeName=node[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + nodes))] CPUs=2 RealMemory=1000$([ "$gpus" = 0 ] || echo " Gres=gpu:$gpus")
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=100
E
    [ "${SLURM_REQUEUE_EXIT:-75}" = none ] || echo "RequeueExit=${SLURM_REQUEUE_EXIT:-75}"
    if [ -n "${SLURM_HEALTH:-}" ]; then
        echo "HealthCheckProgram=$SLURM_HEALTH"
        echo "HealthCheckInterval=${SLURM_HEALTH_EVERY:-2}"
        echo "HealthCheckNodeState=ANY"
    fi
}

# Zombies, where nobody reaps them, answer kill -0.
alive() { case $(ps -o stat= -p "$1") in "" | Z*) return 1 ;; esac; }

finish() { # of a pid file
    local pid
    [ -s "$1" ] || return 0
    pid=$(cat "$1")
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 100); do alive "$pid" || return 0; sleep 0.05; done
    kill -9 "$pid" 2>/dev/null || true
}

down() { for f in "$dir"/slurmd.*.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do finish "$f"; done; }

up() {
    need
    [ "$gpus" -le ${#devices[@]} ] || { echo "at most ${#devices[@]} fake GPUs a node" >&2; exit 2; }
    if [ -e "$dir" ]; then
        [ -e "$dir/$mark" ] || [ -z "$(ls -A "$dir")" ] || { echo "$dir is not a cluster of this script: left alone" >&2; exit 2; }
        down
        rm -rf "$dir"
    fi
    mkdir -p "$dir/state" "$dir/key"
    touch "$dir/$mark"
    chmod 711 "$dir" # munge wants a way to its socket for others, and its key for itself
    chmod 700 "$dir/key"
    head -c 1024 /dev/urandom >"$dir/key/munge.key"
    chmod 400 "$dir/key/munge.key"
    munged --key-file="$dir/key/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" \
        --seed-file="$dir/key/seed"
    conf >"$dir/slurm.conf"
    for ((i = 0; i < gpus; i++)); do echo "NodeName=node[1-$nodes] Name=gpu File=/dev/${devices[i]}"; done >"$dir/gres.conf"
    echo 'PMIxCollFence=ring' >"$dir/mpi.conf" # other fences let Open MPI's ranks talk before all are ready: SIGSEGV in MPI_Init
    export SLURM_CONF=$dir/slurm.conf
    for ((i = 1; i <= nodes; i++)); do mkdir -p "$dir/node$i/tmp"; done
    slurmctld
    for ((i = 1; i <= nodes; i++)); do slurmd -N "node$i"; done
    for _ in $(seq 1200); do # a busy host
        [ "$(sinfo -h -o '%T %D' 2>/dev/null)" = "idle $nodes" ] && return 0
        sleep 0.05
    done
    echo "the nodes do not come up:" >&2
    sinfo -N -o '%N %T %E' >&2 || true
    tail -n 20 "$dir"/*.log >&2
    down
    exit 1
}

# The daemon, its step daemons and all that they started: found as children, never by name.
family() {
    local p
    for p in $(ps -o pid= --ppid "$1"); do family "$p"; done
    echo "$1"
}

node_down() {
    local pids= pid
    pid=$(cat "$dir/slurmd.$1.pid")
    # A step daemon leaves its slurmd: it is the one that holds this node's spool folder as "slurmstepd" with the node in its socket.
    for sock in "$dir/$1/$1"_*; do
        [ -S "$sock" ] || continue
        for p in $(fuser_of "$sock"); do pids="$pids $(family "$p")"; done
    done
    # shellcheck disable=SC2046,SC2086
    kill -9 $(echo $pids $pid | tr ' ' '\n' | sort -un) 2>/dev/null || true
}

# Who listens on a Unix socket: its inode in /proc/net/unix, then the process that has it open.
fuser_of() {
    local inode p
    for inode in $(awk -v s="$1" '$8 == s { print $7 }' /proc/net/unix | sort -u); do
        for p in /proc/[0-9]*; do
            if ls -l "$p/fd" 2>/dev/null | grep -q "socket:\[$inode\]"; then echo "${p#/proc/}"; fi
        done
    done | sort -un
}

env_() {
    echo "export SLURM_CONF=$dir/slurm.conf"
    # All nodes have one host name: shared memory between "nodes" would be found by it, and TCP leaves the loopback interface out.
    echo "export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1"
}

case $command in
up) up ;;
down) down ;;
env) env_ ;;
node-up) SLURM_CONF=$dir/slurm.conf slurmd -N "$3" ;;
node-down) node_down "$3" ;;
*) usage ;;
esac
