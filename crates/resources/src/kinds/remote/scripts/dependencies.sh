# Installs the libraries with which the program is linked.
if command -v dnf >/dev/null 2>&1; then
    exec dnf --assumeyes install glibc libgcc </dev/null
elif command -v yum >/dev/null 2>&1; then
    exec yum --assumeyes install glibc libgcc </dev/null
elif command -v apt-get >/dev/null 2>&1; then
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get update </dev/null
    exec apt-get --yes install libc6 libgcc-s1 </dev/null
fi
echo "there is no dnf, yum or apt-get" >&2
exit 1
