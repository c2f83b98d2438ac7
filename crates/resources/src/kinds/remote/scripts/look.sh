# What is there. $1: `hash` where that of the program is wanted, too.
walk look
echo "directory=$dir"
if [ $there = yes ]; then
    echo "there=yes"
    runs && echo "runs=yes"
    [ "$1" = hash ] && [ -f "$binary" ] && echo "hash=$(sha256sum <"$binary" | cut -d ' ' -f 1)"
    [ -f "$dir/exit" ] && echo "exit=$(head -c 16 "$dir/exit")"
fi
exit 0
