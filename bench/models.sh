#!/bin/bash
# What executing a model costs, and how that grows with it; and one changed answer of the world outside.
#
#   bench/models.sh [--most COUNT]
#
# It reports for 10 000, 100 000 and 1 000 000 instances, resources and calls of a template (of which fewer) the processor's time (the
# shortest of five), the most memory, and the growth of both from one size to the next. Each is measured in processes of its own. --most
# leaves larger ones out.
set -euo pipefail
cd "$(dirname "$0")/.."
exec cargo bench --quiet -p setpoint-cf --bench models -- "$@"
