#!/bin/bash
# Keeps one program running for a while beside somebody who disturbs it: drift of every sort, other programs, restarts, kills,
# stopped processes, full and frozen disks, output that nobody takes. At the end all that stops, and the machine must become right.
#
#   bench/soak.sh [--minutes N] [--seed N] [--count N] [--directory DIR]
#
# It prints what it did how often, and says whether all was well by its exit code. The same seed does the same in the same order, but not at
# the same moments. As root it works in mount namespaces of its own, with a small file system that fills up and, where there are loop
# devices, one that is frozen. SETPOINT=/path/to/setpoint tests that program instead of one that is built here.
. "$(dirname "$0")/support/build.sh"
if [ "$(id -u)" = 0 ]; then
	exec unshare --mount --propagation private "$benchmark" --setpoint "$SETPOINT" "$@"
fi
exec "$benchmark" --setpoint "$SETPOINT" "$@"
