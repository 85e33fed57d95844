#!/bin/sh
# SPDX-License-Identifier: MIT
# Debian packages from a finished build: what `cmake --install` puts where is divided into
#
#   foliage          the tool, its manual pages and completion, and whatever it needs beside it
#   libfoliage0      the library
#   libfoliage-dev   headers, foliage.pc, libfoliage(3)
#   foliage-sqlite   the page cache under SQLite (when it was built)
#
# Nothing of an installation may be left over. Dependencies are dpkg-shlibdeps' findings. Equal builds give equal
# packages: times are those of the last commit, or SOURCE_DATE_EPOCH. DEBFULLNAME and DEBEMAIL name the maintainer.
#
# usage: scripts/make-deb.sh BUILD FOLDER     the packages go to FOLDER
set -eu
build=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "$0")/.."
for tool in dpkg-deb dpkg-shlibdeps cmake strip; do
	command -v $tool >/dev/null || {
		echo "make-deb: no $tool (scripts/setup.sh build deb installs it)" >&2
		exit 1
	}
done
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
revision=$version-1
architecture=$(dpkg --print-architecture)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)}"
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8
umask 022
scratch=$(mktemp -d)
packages=$scratch/debian # where dpkg-shlibdeps looks for them
mkdir "$packages"
trap 'rm -rf "$scratch"' EXIT
maintainer="${DEBFULLNAME:-The Foliage authors} <${DEBEMAIL:-foliage@users.noreply.github.com}>"

# ---- the installation, divided ----
stage=$scratch/stage
DESTDIR=$stage cmake --install "$build" --prefix /usr >/dev/null
take() { # PACKAGE PATH...: the paths that exist move to the package
	local package=$1 path
	shift
	for path; do
		[ -e "$stage/$path" ] || [ -L "$stage/$path" ] || continue
		mkdir -p "$packages/$package/$(dirname "$path")"
		mv "$stage/$path" "$packages/$package/$path"
	done
}
# Installed for /usr/local the libraries are in lib; Debian keeps those of each architecture apart.
lib=usr/lib/$multiarch
mkdir -p "$stage/$lib/pkgconfig"
from=$(dirname "$(find "$stage/usr" -name 'libfoliage.so')")
if [ "$from" != "$stage/$lib" ]; then
	mv "$from"/libfoliage.so* "$stage/$lib"
	[ ! -e "$from/libfoliage-sqlite.so" ] || mv "$from/libfoliage-sqlite.so" "$stage/$lib"
	sed "s|^libdir=.*|libdir=\${prefix}/lib/$multiarch|" "$from/pkgconfig/foliage.pc" >"$stage/$lib/pkgconfig/foliage.pc"
	rm -r "$from/pkgconfig"
fi
take libfoliage-dev usr/include/foliage $lib/libfoliage.so $lib/pkgconfig usr/share/man/man3
for path in "$stage/$lib"/libfoliage.so.*; do
	take libfoliage0 "${path#"$stage"/}"
done
take foliage-sqlite $lib/libfoliage-sqlite.so usr/include/foliage_sqlite.h
find "$stage" -depth -type d -empty -delete
mv "$stage" "$packages/foliage"

# ---- each package ----
describe() { # PACKAGE: section, depends beside libraries, description
	case $1 in
	foliage)
		echo "Section: utils"
		echo "Recommends: fuse3" # for mounts by others than root
		echo "Description: Linux page reclaim on traces of page accesses"
		echo " The classic LRU, the multi-generational LRU with its variants, and the"
		echo " policies of the literature, run on recorded accesses or side by side with"
		echo " published results; miss-ratio curves, and a live view of programs that embed"
		echo " the page cache."
		;;
	libfoliage0)
		echo "Section: libs"
		echo "Multi-Arch: same"
		echo "Description: Linux page reclaim as a library"
		echo " A reclaim engine for programs that bring their own pages, and a page cache"
		echo " with a fixed budget of memory to build into a program."
		;;
	libfoliage-dev)
		echo "Section: libdevel"
		echo "Multi-Arch: same"
		echo "Description: Linux page reclaim as a library - development files"
		echo " Headers, pkg-config file and manual page of libfoliage."
		;;
	foliage-sqlite)
		echo "Section: libs"
		echo "Description: Foliage's page cache under SQLite"
		echo " A library to link or to preload, which makes every connection of a process"
		echo " share one budget of memory instead of a cache each."
		;;
	esac
}

# Compiled code without what only a debugger reads, and without search paths of the build.
clean_binary() {
	strip --strip-unneeded --remove-section=.comment --remove-section=.note "$1"
	echo "file(RPATH_REMOVE FILE \"$1\")" >"$scratch/rpath.cmake"
	cmake -P "$scratch/rpath.cmake" >/dev/null 2>&1
}

put_documents() { # PACKAGE
	local doc="$packages/$1/usr/share/doc/$1"
	mkdir -p "$doc"
	{
		echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
		echo "Upstream-Name: foliage"
		echo
		echo "Files: *"
		sed -n 's/^Copyright (c) /Copyright: /p' LICENSE | head -1
		echo "License: Expat"
		sed '1,/^Copyright/d; /./!d; s/^/ /' LICENSE
	} >"$doc/copyright"
	{
		echo "foliage ($revision) unstable; urgency=medium"
		echo
		echo "  * Packages of version $version, made by \`make deb\`."
		echo
		echo " -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")"
	} | gzip -9n >"$doc/changelog.Debian.gz"
}

needed_libraries() { # PACKAGE
	local binaries
	binaries=$(cd "$scratch" && find "debian/$1" -type f \( -name '*.so*' -o -path '*/bin/*' \))
	[ -n "$binaries" ] || return 0
	printf 'Source: foliage\n\nPackage: %s\nArchitecture: any\n' "$1" >"$packages/control"
	# shellcheck disable=SC2086
	(cd "$scratch" && dpkg-shlibdeps -O "-l$packages/libfoliage0/$lib" $binaries) |
		sed -n 's/^shlibs:Depends=//p'
}

make_package() { # PACKAGE
	local package=$1 root="$packages/$1" depends
	mkdir "$root/DEBIAN"
	find "$root" -type f \( -name '*.so*' -o -path '*/bin/*' \) >"$scratch/binaries"
	while read -r binary; do
		clean_binary "$binary"
	done <"$scratch/binaries"
	find "$root" -path '*/man/*' -type f -exec gzip -9n {} +
	put_documents "$package"
	find "$root" -type f ! -path '*/bin/*' -exec chmod 644 {} +
	depends=$(needed_libraries "$package")
	[ "$package" != libfoliage-dev ] || depends="libfoliage0 (= $revision)"
	{
		echo "Package: $package"
		echo "Source: foliage"
		echo "Version: $revision"
		echo "Architecture: $architecture"
		echo "Maintainer: $maintainer"
		[ -z "$depends" ] || echo "Depends: $depends"
		echo "Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)"
		echo "Priority: optional"
		describe "$package"
	} >"$root/DEBIAN/control"
	[ "$package" != libfoliage0 ] || echo "libfoliage 0 libfoliage0 (>= $version)" >"$root/DEBIAN/shlibs"
	[ -z "$(find "$root/$lib" -maxdepth 1 -type f -name '*.so*' 2>/dev/null)" ] ||
		echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
	(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
	find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$root" "$folder/${package}_${revision}_$architecture.deb" >/dev/null
	echo "$folder/${package}_${revision}_$architecture.deb"
}

rm -f "$folder"/foliage_*.deb "$folder"/libfoliage0_*.deb "$folder"/libfoliage-dev_*.deb "$folder"/foliage-sqlite_*.deb
# libfoliage0 first: the others look for its library.
for package in libfoliage0 libfoliage-dev foliage-sqlite foliage; do
	[ ! -d "$packages/$package" ] || make_package $package
done
