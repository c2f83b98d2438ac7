#!/bin/bash
# `kill -9` at random points of a run over 1000 files, 100 times: never a half-written file, and the next run converges.
#
#   bench/kill.sh [--count N] [--rounds N] [--directory DIR] [--seed N]
#
# Even rounds begin with nothing, odd ones with complete files of the version before. SETPOINT=/path/to/setpoint tests that program
# instead of one that is built here. The exit code says whether all was well.
. "$(dirname "$0")/support/build.sh"
exec "$benchmark" --setpoint "$SETPOINT" "$@"
