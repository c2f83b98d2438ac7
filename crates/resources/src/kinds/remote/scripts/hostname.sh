# The name of this host.
name=$(hostname 2>/dev/null) || name=$(uname -n)
echo "name=$name"
