# E1101: a folder where nothing can be written stops a run.
stretto doctor --run-dir /proc/absent/run --threads 1 >all
status=$?
sed -n '/^stop/,/fix/p' all
exit $status
