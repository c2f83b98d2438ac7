# Runs the script that installs what the program needs.
walk look
sh "$dir/deps.sh"
