#!/bin/bash
# The host of examples/web-host/ from nothing, looked at again, and repaired, beside the same with Ansible in the same run, in a machine that is
# thrown away. Its packages are made on the spot.
#
#   ANSIBLE=/path/to/ansible-playbook bench/web-host.sh
#
# SETPOINT=/path/to/setpoint measures that program instead of one that is built here. Without ANSIBLE only Setpoint is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${SETPOINT:-}" ]; then
	cargo build --quiet --release --package setpoint
	SETPOINT=$PWD/target/release/setpoint
fi
script=$(mktemp)
trap 'rm -f "$script"' EXIT
cat > "$script" <<'END'
set -eu
cd "$ROOT"
. crates/testing/fixtures/local-repository.sh
cd "$ROOT"
. crates/testing/fixtures/web-host-packages.sh
cd "$ROOT"
export DEBIAN_FRONTEND=noninteractive HOME=/root
now() { date +%s%N; }
since() { echo "$1 $(now)" | awk '{printf "%.2f s", ($2 - $1) / 1e9}'; }
timed() { local begun=$(now); "$@" > /bench.log 2>&1 || { cat /bench.log >&2; exit 1; }; since $begun; }
until_active() { until [ "$(systemctl is-active nginx || true)" = active ]; do :; done; }
asked() { python3 -c 'import urllib.request as u, sys; sys.exit(b"www" not in u.urlopen(u.Request("http://127.0.0.1:8080/index.html", headers={"Host": "www.example.org"})).read())' 2> /asked.log; }
# What was told to read its configuration again does so a moment later.
served() { for _ in $(seq 50); do if asked; then return; fi; sleep 0.1; done; cat /asked.log >&2; return 1; }
echo "Setpoint, from nothing: $(timed "$SETPOINT" run --once --tmp-state-dir examples/web-host/)"
served
echo "Setpoint, again: $(timed "$SETPOINT" run --once --tmp-state-dir examples/web-host/)"
"$SETPOINT" run --json --tmp-state-dir examples/web-host/ > /events &
engine=$!
until grep -q '"converged"' /events; do :; done
sleep 1
systemctl stop nginx; begun=$(now); until_active
echo "Setpoint, a service that was stopped runs again: $(since $begun)"
kill $engine; wait $engine || true
if [ -n "${ANSIBLE:-}" ]; then
	systemctl stop nginx
	apt-get -q -y purge nginx > /dev/null 2>&1; userdel webmaster
	systemctl disable --now web-report.timer > /dev/null 2>&1 || true
	rm -rf /srv/www/* /etc/nginx /etc/sysctl.d/99-* /etc/systemd/system/web-report.*
	systemctl daemon-reload
	cd bench/web-host
	echo "Ansible, from nothing: $(timed "$ANSIBLE" -i localhost, playbook.yml)"
	served
	echo "Ansible, again: $(timed "$ANSIBLE" -i localhost, playbook.yml)"
	systemctl stop nginx
	echo "Ansible, a service that was stopped runs again, once the playbook is run: $(timed "$ANSIBLE" -i localhost, playbook.yml)"
	until_active
fi
END
ROOT=$PWD SETPOINT=$SETPOINT ANSIBLE=${ANSIBLE:-} crates/testing/fixtures/with-system-manager bash "$script"
