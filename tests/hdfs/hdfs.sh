#!/bin/bash
# hdfs.sh - a whole HDFS on this host, for tests: one name node and one data node as Java processes on the loopback interface.
#
#     name node  HTTP :BASE   RPC :BASE+1         data node  HTTP :BASE+2   data :BASE+3   IPC :BASE+4
#
# usage: hdfs.sh up DIR       make DIR and start; prints hdfs://127.0.0.1:BASE. DIR must be new or one that this script made
#        hdfs.sh down DIR     end both processes, by their pid files
# Needs Java 17 and the jars of Hadoop in HDFS_JARS (build/hadoop): python3 tests/yarn/cluster.py jars
# HDFS_BASEPORT is the first port (19800). Exit 77: what is needed is not here.
set -eu
usage() { sed -n '5,6s/^# //p' "$0" >&2; exit 2; }
[ $# -eq 2 ] || usage
dir=$(realpath -m "$2")
here=$(cd "$(dirname "$0")" && pwd)
jars=${HDFS_JARS:-$here/../../build/hadoop}
base=${HDFS_BASEPORT:-19800}
mark=.made-by-hdfs.sh

need() {
    command -v java >/dev/null || { echo "skipped: no java (Debian: openjdk-17-jre-headless)"; exit 77; }
    ls "$jars"/hadoop-hdfs-[0-9]*.jar >/dev/null 2>&1 || { echo "skipped: no jars of Hadoop in $jars (see $0)"; exit 77; }
}

property() { printf '<property><name>%s</name><value>%s</value></property>\n' "$1" "$2"; }

conf() {
    {
        echo '<configuration>'
        property fs.defaultFS "hdfs://127.0.0.1:$((base + 1))"
        property hadoop.tmp.dir "$dir/tmp"
        property hadoop.http.staticuser.user "$(id -un)"
        property "hadoop.proxyuser.$(id -un).hosts" "*" # YARN acts for the user that hands in a service
        property "hadoop.proxyuser.$(id -un).groups" "*"
        echo '</configuration>'
    } >"$dir/conf/core-site.xml"
    {
        echo '<configuration>'
        property dfs.replication 1
        property dfs.namenode.name.dir "$dir/name"
        property dfs.datanode.data.dir "$dir/data"
        property dfs.namenode.http-address "127.0.0.1:$base"
        property dfs.namenode.rpc-address "127.0.0.1:$((base + 1))"
        property dfs.datanode.hostname 127.0.0.1
        property dfs.datanode.http.address "127.0.0.1:$((base + 2))"
        property dfs.datanode.address "127.0.0.1:$((base + 3))"
        property dfs.datanode.ipc.address "127.0.0.1:$((base + 4))"
        property dfs.namenode.safemode.extension 0
        property dfs.namenode.fs-limits.min-block-size 1024
        property dfs.permissions.enabled true
        echo '</configuration>'
    } >"$dir/conf/hdfs-site.xml"
    printf '%s\n' 'log4j.rootLogger=WARN,out' 'log4j.appender.out=org.apache.log4j.ConsoleAppender' \
        'log4j.appender.out.layout=org.apache.log4j.PatternLayout' 'log4j.appender.out.layout.ConversionPattern=%d %p %c{2}: %m%n' \
        >"$dir/conf/log4j.properties"
}

java_run() { # NAME CLASS [ARGUMENT ...]: takes the place of the shell
    exec >>"$dir/$1.log" 2>&1 </dev/null
    shift
    export HADOOP_CONF_DIR=$dir/conf
    exec java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --add-opens=java.base/java.lang=ALL-UNNAMED \
        -Dhadoop.home.dir="$dir" -cp "$dir/conf:$jars/*" "$@"
}

daemon() { # NAME CLASS
    java_run "$@" &
    echo $! >"$dir/$1.pid"
}

up() {
    need
    [ ! -e "$dir" ] || [ -e "$dir/$mark" ] || { echo "$dir exists and was not made by $0" >&2; exit 2; }
    rm -rf "$dir"
    mkdir -p "$dir/data" "$dir/conf/webapps/"{hdfs,datanode,static}/WEB-INF # the jars lack the pages of the web interface
    chmod 700 "$dir/data"
    touch "$dir/$mark"
    conf
    (java_run format org.apache.hadoop.hdfs.server.namenode.NameNode -format -force -nonInteractive)
    daemon namenode org.apache.hadoop.hdfs.server.namenode.NameNode
    daemon datanode org.apache.hadoop.hdfs.server.datanode.DataNode
    python3 - "http://127.0.0.1:$base" "$(cat "$dir/namenode.pid")" "$(cat "$dir/datanode.pid")" <<'P' || { tail -n 20 "$dir"/*.log >&2; exit 1; }
import json, os, sys, time, urllib.request
for _ in range(600):
    if not all(os.path.exists("/proc/" + pid) for pid in sys.argv[2:]):
        sys.exit("a node has ended")
    try:
        q = sys.argv[1] + "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        state = json.load(urllib.request.urlopen(q, timeout=5))["beans"][0]
        if state["NumLiveDataNodes"] > 0 and state["FSState"] == "Operational":
            sys.exit(0)
    except (OSError, ValueError, LookupError):
        pass
    time.sleep(0.1)
sys.exit("the name node is not ready after 60 s")
P
    echo "hdfs://127.0.0.1:$base"
}

down() {
    for name in datanode namenode; do
        [ -f "$dir/$name.pid" ] || continue
        pid=$(cat "$dir/$name.pid")
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 200); do
            case $(ps -o stat= -p "$pid" || true) in "" | Z*) break ;; esac
            sleep 0.05
        done
        kill -9 "$pid" 2>/dev/null || true
        rm -f "$dir/$name.pid"
    done
}

case $1 in up) up ;; down) down ;; *) usage ;; esac
