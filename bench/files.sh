#!/bin/bash
# The whole program against bare loops of the same system calls, in the same run.
#
#   bench/files.sh [--count N] [--drifts N] [--rounds N] [--idle SECONDS] [--directory DIR] [--only check,runs,plan,drift,input,change,idle]
#
# It reports: checking N statements and ten times as many; a cold run and one that finds nothing to do; plans compared with runs; the repair of one drift, and the
# reaction to one changed input, beside N files; one resource more or less among 20 000; memory, threads and descriptors while idle.
# Without --directory it does so in the directory for temporary files and in memory (/dev/shm). The loops make the same promise with the
# same syncs. SETPOINT=/path/to/setpoint measures that program instead of one that is built here.
. "$(dirname "$0")/support/build.sh"
case " $* " in
*" --directory "*) exec "$benchmark" --setpoint "$SETPOINT" "$@" ;;
esac
for directory in "${TMPDIR:-/tmp}" /dev/shm; do
	"$benchmark" --setpoint "$SETPOINT" --directory "$directory" "$@"
	echo
done
