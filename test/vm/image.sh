#!/bin/bash
# SPDX-License-Identifier: MIT
#
# image.sh FOLDER: a Linux kernel that has soft-RoCE, and a first file system
# for it, as FOLDER/vmlinuz and FOLDER/initrd.
#
# The kernel is Debian's, downloaded as a package and unpacked, never
# installed.  All that the machine needs beyond it comes from this host's own
# file system, which init mounts.  Exits with 77, and a reason, where there is
# no such kernel to be had.
set -eu
dir=$1
here=$(cd "$(dirname "$0")" && pwd)
modules="virtio_pci virtio_console virtio_net 9p 9pnet_virtio overlay
	crc32_generic veth dummy 8021q rdma_rxe rdma_ucm sch_netem"

skip() {
	echo "no virtual machine: $1"
	exit 77
}

busybox=$(command -v busybox) || skip "busybox is missing (busybox-static)"
command -v apt-get >/dev/null ||
	skip "apt-get, which brings a kernel, is missing"
[ "$(uname -m)" = x86_64 ] || skip "it is for x86_64, not for $(uname -m)"

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
cd "$dir"
# Two runs may want it at once.
exec 9>lock
flock 9

package=$(apt-cache depends linux-image-amd64 2>/dev/null |
	awk '/Depends: linux-image-/ { print $2; exit }')
[ -n "$package" ] || skip "apt-cache knows no linux-image-amd64"
version=${package#linux-image-}
if ! [ -e "modules-$version/done" ]; then
	rm -rf unpacked modules-*
	# Its own user for downloads may have no way into this folder.
	apt-get -qq -o APT::Sandbox::User=root download "$package" ||
		skip "cannot download $package"
	dpkg-deb -x "$package"_*.deb unpacked
	rm -f "$package"_*.deb
	mv "unpacked/lib/modules/$version" "modules-$version"
	mv "unpacked/boot/vmlinuz-$version" vmlinuz
	rm -rf unpacked initrd
	touch "modules-$version/done"
fi
if [ -e initrd ] && [ initrd -nt "$here/init" ] &&
	[ initrd -nt "$here/image.sh" ]; then
	exit 0
fi

rm -rf root
mkdir -p root/bin root/proc root/sys root/dev "root/lib/modules/$version"
cp "$busybox" root/bin/busybox
ln -s busybox root/bin/sh
cp "$here/init" root/init
(cd "modules-$version" && find kernel -name '*.ko*' >../all-modules)
mkdir -p probe/lib/modules
ln -sfn "$dir/modules-$version" "probe/lib/modules/$version"
"$busybox" depmod -b "$dir/probe" "$version"
# A line of modules.dep is a module's file and those that it needs.
for module in $modules; do
	line=$(grep -E "/$module\.ko[^:]*:" "modules-$version/modules.dep") ||
		skip "$package has no module $module"
	for file in ${line/:/}; do
		mkdir -p "root/lib/modules/$version/${file%/*}"
		cp "modules-$version/$file" "root/lib/modules/$version/$file"
	done
done
"$busybox" depmod -b "$dir/root" "$version"
(cd root && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) \
	>initrd.part
mv initrd.part initrd
rm -rf root probe all-modules
