# Starts the program. $1: what waits for it; $2: what becomes it; then its arguments.
walk make
runs && refuse "it runs already"
wait=$1 become=$2
shift 2
rm -f "$dir/pid" "$dir/exit"
[ -f "$dir/log" ] && mv -f "$dir/log" "$dir/log.old"
: >"$dir/log"
cd "$dir" || exit 1
# What is put into the background by a shell would ignore SIGINT, with all that it starts.
if setsid -f true 2>/dev/null; then
    setsid -f sh -c "$wait" "$dir" "$become" "$binary" "$@" >/dev/null 2>&1 </dev/null
else
    setsid sh -c "$wait" "$dir" "$become" "$binary" "$@" >/dev/null 2>&1 </dev/null &
fi
