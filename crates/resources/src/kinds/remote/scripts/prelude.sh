# What all scripts begin with: where things are, and that nobody else can change them.
# $1: where the directory begins, `home` or a path; $2: its first part; $3: its last part; $4: the name of the program.
umask 077
LC_ALL=C
export LC_ALL
unset CDPATH
echo --setpoint--

refuse() {
    echo "refused=$1"
    exit 3
}

for needed in stat sha256sum readlink tail; do
    command -v "$needed" >/dev/null 2>&1 || refuse "there is no program $needed"
done

user=$(id -u)
base=$1 first=$2 last=$3 program=$4
shift 4
[ "$base" = home ] && base=$HOME
real=$(cd -P -- "$base" 2>/dev/null && pwd -P) || refuse "there is no directory $base"
base=${real%/}
dir=$base/$first/remote/$last
binary=$dir/$program

# Refuses what is no directory, and one that others than this user and root can change.
trust() {
    [ -L "$1" ] && refuse "$1 is a symbolic link"
    [ -d "$1" ] || refuse "$1 is no directory"
    set -- "$1" $(stat -c '%u %g %a' "$1")
    [ "$2" = 0 ] || [ "$2" = "$user" ] || refuse "$1 belongs to another user"
    [ $((0$4 & 2)) = 0 ] || refuse "others can write to $1"
    [ "$3" = 0 ] || [ $((0$4 & 16)) = 0 ] || refuse "the group of $1 can write to it"
}

# Looks whether the directory is there, or with `make` makes what is missing of it.
walk() {
    there=yes
    trust "${base:-/}"
    part=$base
    for name in "$first" remote "$last"; do
        part=$part/$name
        if [ ! -e "$part" ] && [ ! -L "$part" ]; then
            if [ "$1" = look ]; then
                there=no
                return
            fi
            mkdir "$part" || [ -d "$part" ] || exit 1
        fi
        trust "$part"
    done
}

# Whether the process that the file names is our program.
runs() {
    pid=
    [ -f "$dir/pid" ] && pid=$(head -c 16 "$dir/pid")
    case $pid in
    '' | *[!0-9]*) return 1 ;;
    esac
    case $(readlink "/proc/$pid/exe" 2>/dev/null) in
    "$binary" | "$binary (deleted)") return 0 ;;
    esac
    return 1
}
