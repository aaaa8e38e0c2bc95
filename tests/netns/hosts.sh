#!/bin/bash
# hosts.sh - several hosts on this one, for tests: network namespaces that see each other over links of a stated rate and delay.
#
#     NAME-1 e0 10.77.X.1 --.                       each has its own interfaces, its own host name, its own loopback
#     NAME-2 e0 10.77.X.2 ---- bridge in NAME-sw    p1, p2, ..: the ports of the switch, where a link is cut
#     NAME-3 e0 10.77.X.3 --'
#
# usage: hosts.sh up NAME [HOSTS] [RATE] [DELAY]   make them (3, 1gbit, 200us); prints what the links are
#        hosts.sh down NAME                        remove them, and end what still runs there
#        hosts.sh agent NAME ADDRESS COMMAND ..    run a command on a host: what Open MPI and MPICH start theirs by
#        hosts.sh cut NAME HOST                    pull its cable out of the switch
#        hosts.sh mend NAME HOST
# These are emulated links: no network card, one clock, two ends on the same cores.  Wants root, ip and tc.  Exit 77: not here.
# HOSTS_NET is X (77).  Without netem in the kernel there is no delay, only a rate (tbf); without both, neither: it says so.
set -eu
usage() { sed -n '7,11s/^# //p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
command=$1
name=$2
net=10.77.${HOSTS_NET:-77}
PATH=$PATH:/usr/sbin:/sbin

need() {
    for tool in ip tc unshare sysctl; do command -v $tool >/dev/null || { echo "skipped: no $tool (Debian: iproute2, util-linux, procps)"; exit 77; }; done
    [ "$(id -u)" = 0 ] || { echo "skipped: network namespaces want root"; exit 77; }
    ip netns add "$name-sw" 2>/dev/null || { echo "skipped: no network namespace can be made here"; exit 77; }
    ip -n "$name-sw" link add br0 type bridge 2>/dev/null || { down; echo "skipped: this kernel makes no bridge"; exit 77; }
}

down() {
    local n p
    for n in $(ip netns list | awk -v n="$name-" 'index($1, n) == 1 { print $1 }'); do
        for p in $(ip netns pids "$n"); do kill -9 "$p" 2>/dev/null || true; done
        ip netns del "$n"
    done
}

shape() { # namespace, rate, delay: what became of it
    if ip netns exec "$1" tc qdisc replace dev e0 root netem delay "$3" rate "$2" 2>/dev/null; then echo "rate $2, delay $3 (netem)"
    elif ip netns exec "$1" tc qdisc replace dev e0 root tbf rate "$2" burst 256kb latency 50ms 2>/dev/null; then
        echo "rate $2 (tbf), no delay: this kernel has no netem"
    else echo "not shaped: this kernel has neither netem nor tbf"; fi
}

up() {
    local hosts=$1 k links
    need
    ip -n "$name-sw" link set br0 up
    for ((k = 1; k <= hosts; k++)); do
        ip netns add "$name-$k"
        ip link add e0 netns "$name-$k" type veth peer name "p$k" netns "$name-sw"
        ip -n "$name-sw" link set "p$k" master br0 up
        ip -n "$name-$k" link set lo up
        ip -n "$name-$k" addr add "$net.$k/24" dev e0
        ip -n "$name-$k" link set e0 up
        ip netns exec "$name-$k" sysctl -qw net.ipv4.tcp_retries2=5 # a launcher gives a silent host up after seconds, not minutes
        links=$(shape "$name-$k" "$2" "$3")
    done
    echo "emulated: $hosts hosts, links of $links"
}

# A host name of its own: Open MPI and MPICH name sockets and shared memory by it, and would find those of other "hosts".
agent() {
    local k=${1##*.}
    shift
    exec ip netns exec "$name-$k" unshare --uts sh -c 'hostname "$1"; shift; eval "exec $*"' sh "host$k" "$@"
}

case $command in
up) up "${3:-3}" "${4:-1gbit}" "${5:-200us}" ;;
down) down ;;
agent) shift 2; agent "$@" ;;
cut) ip -n "$name-sw" link set "p$3" down ;;
mend) ip -n "$name-sw" link set "p$3" up ;;
*) usage ;;
esac
