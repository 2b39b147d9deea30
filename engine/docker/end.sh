# Ends every process inside that carries the marker $1, with its session and
# whatever descends from it: asks at first, kills what is left after a second.
# Then it becomes the rest of its arguments, under the same marker; with none, it
# exits, with 1 when something would not end.
m=$1
shift
unset CELLMUX_EXECUTION
members() {
	pids=' '
	for f in $(grep -lsF "CELLMUX_EXECUTION=$m" /proc/[0-9]*/environ); do
		f=${f#/proc/}
		f=${f%/environ}
		[ "$f" = 1 ] || [ "$f" = $$ ] || pids="$pids$f "
	done
	[ "$pids" != ' ' ] || return 0
	grown=yes
	while [ "$grown" ]; do
		grown=
		for f in /proc/[0-9]*/stat; do
			line=
			{ read -r line <"$f"; } 2>/dev/null || continue
			p=${line%% *}
			case $pids in *" $p "*) continue ;; esac
			[ "$p" != 1 ] && [ "$p" != $$ ] || continue
			# The name stands in parentheses and may hold some; the last one ends
			# it. The state, the parent, the group and the session follow.
			fields ${line##*) }
			case $pids in *" $parent "* | *" $session "*)
				[ "$state" = Z ] || { pids="$pids$p " grown=yes; }
				;;
			esac
		done
	done
}
fields() {
	state=$1 parent=$2 session=$4
}
n=0
while :; do
	members
	[ "$pids" != ' ' ] || break
	[ $n -lt 40 ] || exit 1
	if [ $n -ge 10 ]; then
		kill -KILL $pids 2>/dev/null
	elif [ $n -eq 0 ]; then
		kill -TERM $pids 2>/dev/null
		kill -CONT $pids 2>/dev/null
	fi
	n=$((n + 1))
	sleep 0.1
done
[ $# -gt 0 ] || exit 0
export CELLMUX_EXECUTION="$m"
exec "$@"
