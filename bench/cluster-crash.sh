#!/bin/bash
# `kill -9` at random moments, again and again, of hosts of a cluster, of whoever deploys to it and of the members of its etcd, while hosts export,
# collect, share strings and stand for elections, and deploys follow each other. In the end the whole history of the store is looked at.
#
#   bench/cluster-crash.sh [--kills N] [--seed N]
#
# No deploy lost or run twice by a process, no export and no string lost, never more hosts chosen than wanted, all hosts right in the end. It is the
# test of that name with more kills (1000), and needs `etcd` and `etcdctl`. The exit code says whether all was well.
set -euo pipefail
cd "$(dirname "$0")/.."
kills=1000 seed=1
while [ $# -gt 0 ]; do
	case $1 in
	--kills) kills=$2 ;;
	--seed) seed=$2 ;;
	*) echo "$0: $1 is no option of it" >&2; exit 64 ;;
	esac
	shift 2
done
export SETPOINT_CLUSTER_KILLS=$kills SETPOINT_RANDOM_SEED=$seed
exec cargo test --quiet -p setpoint --test main -- --exact --nocapture \
	cluster::crash::nothing_is_lost_or_done_twice_however_often_anything_is_killed
