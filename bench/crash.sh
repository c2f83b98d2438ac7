#!/bin/bash
# `kill -9` at random points of runs of one program after the other, over files, commands that are notified, resources that are undone when
# they leave the program, groups and exports, on one prefix. In between nobody repairs anything by hand, but users change what is theirs.
#
#   bench/crash.sh [--rounds N] [--files N] [--directory DIR] [--seed N]
#
# Never a half-written file; no notification and no undo is lost, none is made for a wish of later. SETPOINT=/path/to/setpoint tests that
# program instead of one that is built here. The exit code says whether all was well.
. "$(dirname "$0")/support/build.sh"
exec "$benchmark" --setpoint "$SETPOINT" "$@"
