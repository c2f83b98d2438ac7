# Removes the directory, and what led to it where nothing else is in it.
walk look
[ $there = yes ] || exit 0
runs && refuse "the program still runs"
rm -rf -- "$dir" || exit 1
rmdir "$base/$first/remote" "$base/$first" 2>/dev/null
exit 0
