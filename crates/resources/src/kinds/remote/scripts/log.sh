# The last lines of the log.
walk look
[ -f "$dir/log" ] && tail -c 8192 "$dir/log" | tail -n 20
exit 0
