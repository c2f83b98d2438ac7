#!/bin/bash
# The whole program against a bare loop of the same system calls, in the same run: 10 000 files in one program.
#
#   bench/files.sh [--count N] [--drifts N] [--rounds N] [--directory DIR] [--idle SECONDS]
#
# It reports: checking, a cold run, a run that finds nothing to do, the repair of one drift, the reaction to one changed input;
# then processor time while idle, inotify instances, watches, threads, descriptors, and memory per resource.
# SETPOINT=/path/to/setpoint measures that program instead of one that is built here.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${SETPOINT:-}" ]; then
	cargo build --quiet --profile fast -p setpoint
	SETPOINT=target/fast/setpoint
fi
mkdir -p target/bench
rustc --edition 2024 -O bench/files.rs -o target/bench/files
exec target/bench/files --setpoint "$SETPOINT" "$@"
