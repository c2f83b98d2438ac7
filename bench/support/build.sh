# shellcheck shell=bash
# What the scripts of benchmarks begin with: goes to the root of the repository and builds the benchmark of the script, and the
# program too, unless SETPOINT names one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [ -z "${SETPOINT:-}" ]; then
	cargo build --quiet --release -p setpoint
	SETPOINT=target/release/setpoint
fi
name=$(basename "$0" .sh)
benchmark=target/bench/$name
mkdir -p target/bench
rustc --edition 2024 -O "bench/$name.rs" -o "$benchmark"
