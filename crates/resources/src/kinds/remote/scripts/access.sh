# What this host has to be let in by the store. $1: where that lies.
for name in cert.pem key.pem password; do
    [ -r "$1/$name" ] && echo "has=$name"
done
[ -r "$1/user" ] && echo "has=user" && echo "user=$(head -n 1 "$1/user" | head -c 256)"
exit 0
