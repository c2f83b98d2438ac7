#!/bin/bash
# What a cluster costs, on a real etcd of this machine: how soon what one host exports is a resource of another one, beside a bare client of
# etcd in the same run; how long many hosts (processes) take for a deploy; what they ask the store for when nothing happens.
#
#   bench/cluster.sh [latency|deploy|idle]… [--samples N] [--hosts N] [--files N] [--seconds N]
#
# SETPOINT=/path/to/setpoint measures that program instead of one that is built here.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${SETPOINT:-}" ]; then
	cargo build --quiet --release -p setpoint
	SETPOINT=target/release/setpoint
fi
SETPOINT=$(realpath "$SETPOINT") exec cargo bench --quiet -p setpoint --bench cluster -- "$@"
