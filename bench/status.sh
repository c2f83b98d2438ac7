#!/bin/bash
# What it costs to ask a running process: how long `status` takes among many resources, and what a follower of events costs while drift is
# repaired.
#
#   bench/status.sh [--count N] [--seconds N] [--drifts N] [--directory DIR]
#
# SETPOINT=/path/to/setpoint measures that program instead of one that is built here.
. "$(dirname "$0")/support/build.sh"
exec "$benchmark" --setpoint "$SETPOINT" "$@"
