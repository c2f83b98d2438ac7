#!/bin/bash
# What looking at a program costs, and how that grows with it; and a keystroke through the language server.
#
#   bench/growth.sh [--rounds N] [--only PART] [--doublings N]
#
# It reports: analysing, linting and formatting 10 000 statements; each answer of the server after a keystroke in them; and for each shape
# of program the time at three sizes, each twice the one before, with its growth. Times are the shortest of all rounds (15 of the largest
# size, and of smaller ones as many as take as long). --only takes shapes whose name holds PART, or `keystrokes`.
# --doublings takes larger sizes too (2 are usual): what grows by a step once, where it leaves a cache, is told from what goes on growing.
set -euo pipefail
cd "$(dirname "$0")/.."
exec cargo bench --quiet -p setpoint-lsp --bench growth -- "$@"
