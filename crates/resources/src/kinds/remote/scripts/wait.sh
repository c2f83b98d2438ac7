# Runs in a session of its own as long as the program does, and writes down how that ends. $0: the directory; $1: what becomes the program.
become=$1
shift
sh -c "$become" "$0" "$@" >>"$0/log" 2>&1
echo $? >"$0/exit.new"
mv -f "$0/exit.new" "$0/exit"
