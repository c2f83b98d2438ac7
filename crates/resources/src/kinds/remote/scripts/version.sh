# Whether the program can run here at all.
walk look
"$binary" --version </dev/null
