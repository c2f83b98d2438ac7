# Sends a signal to the program, if it is still that. $1: the signal.
walk look
[ $there = yes ] && runs && kill -s "$1" "$pid"
exit 0
