# Puts what is read into a file, at once and as a whole. $1: its name; $2: its mode; $3: its hash.
walk make
[ -L "$dir/$1" ] || [ -d "$dir/$1" ] && refuse "$dir/$1 is no file"
rm -f "$dir/$1".new.*
new=$dir/$1.new.$$
if ! { cat >"$new" && chmod "$2" "$new"; }; then
    rm -f "$new"
    exit 1
fi
if [ "$(sha256sum <"$new" | cut -d ' ' -f 1)" != "$3" ]; then
    rm -f "$new"
    refuse "what has come is not what was sent"
fi
mv -f "$new" "$dir/$1"
