#!/bin/bash
# SPDX-License-Identifier: MIT
#
# vm.sh [-n NAME] [-l PORT|-c PORT] [-p CPUS] [-m MIB] [-t SECONDS] COMMAND...
# vm.sh -i: an interactive shell
#
# Run a shell command as root in a virtual machine of its own whose file system
# is this host's (writes are lost with the machine, but for those below
# $VM_OUT), with a soft-RoCE device rxe0.  Prints what the command prints and
# ends with its status; 125 where the machine did not boot, hung, or its kernel
# complained, which is then shown; 77 where there is no machine to be had.
#
# The machine is emulated; VM_ACCEL=kvm takes the processor's own help.
#
# Two machines are joined by -l PORT (listens on this host's loopback) and
# -c PORT: they are 10.77.0.1 and 10.77.0.2.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
base=$top/build/vm
name=vm
net=
number=
cpus=2
memory=2048
limit=300
interactive=
while getopts n:l:c:p:m:t:i option; do
	case $option in
	n) name=$OPTARG ;;
	l) net="socket,id=net,listen=127.0.0.1:$OPTARG" number=1 ;;
	c) net="socket,id=net,connect=127.0.0.1:$OPTARG" number=2 ;;
	p) cpus=$OPTARG ;;
	m) memory=$OPTARG ;;
	t) limit=$OPTARG ;;
	i) interactive=yes ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))

command -v qemu-system-x86_64 >/dev/null || {
	echo "no virtual machine: qemu-system-x86_64 is missing" \
		"(qemu-system-x86)"
	exit 77
}
"$here/image.sh" "$base" || exit

dir=$base/$name
mkdir -p "$dir"
# One machine a name: what it leaves there is told by nothing else.
exec 8>"$dir/lock"
flock -n 8 || {
	echo "vm.sh: a machine named $name is running"
	exit 125
}
rm -f "$dir/command" "$dir/console" "$dir/status" "$dir/output" \
	"$dir/interactive"
if [ -n "$interactive" ]; then
	touch "$dir/interactive"
	printf 'cd %q\nPS1="vm# " bash --norc -i\n' "$top" >"$dir/command"
else
	printf 'cd %q\nexport VM_OUT=%q\n%s\n' "$top" "$dir" "$*" \
		>"$dir/command"
fi

# Under emulation a processor may be away for seconds; a kernel that is stuck
# is noticed all the same.
words="console=ttyS0 quiet loglevel=5 panic=-1 oops=panic mitigations=off"
words="$words no_timer_check rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60"
words="$words wreath.name=$name wreath.dir=$dir"
[ -z "$net" ] || words="$words wreath.net=$number"
share=security_model=none,multidevs=remap
set -- -accel "${VM_ACCEL:-tcg,thread=multi}" -cpu max -smp "$cpus" \
	-m "$memory" -nodefaults -no-reboot -display none \
	-kernel "$base/vmlinuz" -initrd "$base/initrd" \
	-append "$words" \
	-virtfs "local,path=/,mount_tag=host,readonly=on,$share" \
	-virtfs "local,path=$dir,mount_tag=out,$share"
mac=52:54:00:77:00:0${number:-0}
[ -z "$net" ] || set -- "$@" -netdev "$net" -device \
	"virtio-net-pci,romfile=,netdev=net,host_mtu=4500,mac=$mac"
if [ -n "$interactive" ]; then
	exec qemu-system-x86_64 "$@" -serial mon:stdio
fi
timeout -k 5 "$limit" qemu-system-x86_64 "$@" \
	-serial "file:$dir/console" -device virtio-serial-pci \
	-chardev "file,id=out,path=$dir/output" \
	-device virtserialport,chardev=out,nr=1 \
	-chardev "file,id=status,path=$dir/status" \
	-device virtserialport,chardev=status,nr=2 </dev/null &
machine=$!
trap 'kill $machine; wait; exit 130' INT TERM HUP
: >>"$dir/output"
tail -n +1 -f --pid=$machine -s 0.2 "$dir/output" &
reader=$!
wait $machine
ended=$?
wait $reader

trouble='BUG:|WARNING:|Oops|Call Trace|general protection|soft lockup|hung_task'
trouble="$trouble|blocked for more than|rcu.*stall|Kernel panic|Out of memory"
status=$(tr -dc 0-9 <"$dir/status" 2>/dev/null)
if grep -qE "$trouble" "$dir/console"; then
	echo "vm.sh: the kernel complained:"
	grep -nE -A 30 "$trouble" "$dir/console" | head -n 60
	exit 125
elif [ -z "$status" ]; then
	echo "vm.sh: the machine ended without the command's status" \
		"(qemu: $ended; 124: after $limit s); its console's end:"
	tail -n 20 "$dir/console"
	exit 125
fi
exit "$status"
