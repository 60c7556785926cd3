#!/bin/sh
# Build the kernel of `--in linux-vm`: User-Mode Linux, with a clock that stands still while anything
# computes, from the distribution's kernel source. Usage: build.sh FOLDER [VERSION]
set -eu

folder=$1
version=${2:-6.12}
here=$(cd "$(dirname "$0")" && pwd)

skip() {
    echo "linux-vm: not built: $1"
    exit 0
}

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || skip "it needs Linux on x86-64"
for tool in gcc make flex bison bc dpkg-deb; do
    command -v "$tool" >/dev/null || skip "it needs $tool: apt-get install gcc make flex bison bc"
done

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$folder/work
rm -rf "$work"
mkdir "$work"
trap 'rm -rf "$work"' EXIT

cd "$work"
archive=/usr/src/linux-source-$version.tar.xz
if [ ! -f "$archive" ]; then
    echo "linux-vm: fetching the package linux-source-$version ..."
    apt-get download "linux-source-$version" >/dev/null 2>&1 ||
        skip "apt-get cannot download linux-source-$version (Debian's backports have it)"
    dpkg-deb -x linux-source-*.deb . && rm linux-source-*.deb
    archive=$work$archive
fi
mkdir source build
tar -xf "$archive" -C source --strip-components=1

# Random numbers follow from the command line alone.
sed -i '/^ssize_t os_getrandom/,/^}/ s/return getrandom(.*/memset(buf, 0, len);\n\treturn len;/' \
    source/arch/um/os-Linux/util.c
grep -q 'memset(buf, 0, len)' source/arch/um/os-Linux/util.c ||
    { echo "linux-vm: os_getrandom is not where it was in Linux 6.12" >&2; exit 1; }
# Processors with AMX have a larger register file than User-Mode Linux of this age makes room for.
sed -i 's/DEFINE_LONGS(HOST_FP_SIZE, 2696)/DEFINE_LONGS(HOST_FP_SIZE, 12288)/' \
    source/arch/x86/um/user-offsets.c
grep -q 12288 source/arch/x86/um/user-offsets.c ||
    { echo "linux-vm: HOST_FP_SIZE is not where it was in Linux 6.12" >&2; exit 1; }
# The tick of Debian's kernels.
sed -i '/^config HZ$/,/default/ s/default 100/default 250/' source/arch/um/Kconfig

make -s -C source ARCH=um O="$work/build" defconfig >/dev/null
grep -v '^#' "$here/config" | sed 's/^/CONFIG_/' >>build/.config
make -s -C build ARCH=um olddefconfig >/dev/null 2>&1
echo "linux-vm: compiling Linux $version, which takes about ten minutes ..."
make -s -C build ARCH=um -j"$(nproc)" linux >build.log 2>&1 || { tail -n 5 build.log >&2; exit 1; }
strip -o "$folder/linux" build/linux
echo "linux-vm: $folder/linux; run: anabranch run FILE.toml --live --in linux-vm"
