# Says which process it is, and becomes the program, with what usually holds for one. $0: the directory.
echo $$ >"$0/pid.new" && mv -f "$0/pid.new" "$0/pid" || exit 126
unset LC_ALL
umask 022
exec "$@" </dev/null
