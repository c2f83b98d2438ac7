#!/bin/bash
# What it costs to install many packages together and one by one, beside the bare commands in the same run. Packages are made on the spot, in a
# machine that is thrown away.
#
#   bench/packages.sh [--count N]
#
# SETPOINT=/path/to/setpoint measures that program instead of one that is built here.
set -euo pipefail
cd "$(dirname "$0")/.."
count=200
while [ $# -gt 0 ]; do
	case $1 in
		--count) count=$2; shift 2 ;;
		*) echo "usage: bench/packages.sh [--count N]" >&2; exit 2 ;;
	esac
done
if [ -z "${SETPOINT:-}" ]; then
	cargo build --quiet --release --package setpoint
	SETPOINT=$PWD/target/release/setpoint
fi
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat > "$script" <<'END'
set -eu
mkdir -p /repo
rm -rf /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/repo ./' > /etc/apt/sources.list
names=$(seq -f 'many-%03g' 1 "$COUNT")
for name in $names; do
	mkdir -p /build/DEBIAN /build/usr/share/$name
	echo $name > /build/usr/share/$name/text
	printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: bench\nDescription: a package\n' $name > /build/DEBIAN/control
	dpkg-deb -b /build /repo/${name}_1_all.deb > /dev/null
	rm -r /build
done
cd /repo
for file in *.deb; do
	dpkg-deb -f $file
	printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $file $(stat -c %s $file) $(sha256sum $file | cut -d' ' -f1)
done > Packages
apt-get -q update > /dev/null
cd /
list=$(for name in $names; do printf '"%s", ' $name; done)
printf 'pkg [%s] {}\n' "$list" > /many.mcl
seconds() {
	local begun=$(date +%s%N)
	"$@" > /bench.log 2>&1 || { cat /bench.log; exit 1; }
	echo "$begun $(date +%s%N)" | awk '{printf "%.2f\n", ($2 - $1) / 1e9}'
}
one_by_one() { for name in $names; do apt-get -q -y install $name; done; }
remove() { apt-get -q -y remove $names > /dev/null 2>&1; }
export DEBIAN_FRONTEND=noninteractive
bare_together=$(seconds apt-get -q -y install $names); remove
together=$(seconds "$SETPOINT" run --once --tmp-state-dir /many.mcl)
again=$(seconds "$SETPOINT" run --once --tmp-state-dir /many.mcl); remove
bare_alone=$(seconds one_by_one); remove
alone=$(seconds "$SETPOINT" run --once --tmp-state-dir --no-autogroup /many.mcl)
ratio() { echo "$1 $2" | awk '{printf "%.2f", $1 / $2}'; }
echo "$COUNT packages together: $together s, bare $bare_together s, ratio $(ratio $together $bare_together)"
echo "$COUNT packages one by one: $alone s, bare $bare_alone s, ratio $(ratio $alone $bare_alone)"
echo "together instead of one by one: $(ratio $alone $together) times as fast; nothing to do: $again s"
END
COUNT=$count SETPOINT=$SETPOINT crates/testing/fixtures/with-system-manager bash "$script"
