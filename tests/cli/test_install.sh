# What an installation holds, and that a C and a C++ program build against it.
. "$(dirname "$0")/lib.sh"
build=$(dirname "$foliage")
if ! command -v cmake >/dev/null || [ ! -e "$build/cmake_install.cmake" ]; then
	echo "SKIP: $build is not a build folder of cmake"
	exit 0
fi
cmake --install "$build" --prefix "$scratch/usr" >log 2>&1 || complain "install: $(tail -3 log)"
lib=$(dirname "$(find usr -name libfoliage.so)")
for file in usr/bin/foliage usr/include/foliage/policy.h usr/include/foliage/version.h "$lib/pkgconfig/foliage.pc" \
	usr/share/man/man1/foliage.1 usr/share/man/man1/foliage-replay.1 usr/share/man/man3/libfoliage.3 \
	usr/share/bash-completion/completions/foliage "$lib/foliage/libfoliage-record.so"; do
	[ -s "$file" ] || complain "not installed: $file"
done
same soname "$(readelf -d "$lib/libfoliage.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" libfoliage.so.0
# Only what the headers declare is visible.
nm -D --defined-only "$lib/libfoliage.so" | awk '$2 ~ /[A-Z]/ { print $3 }' | grep -v '^foliage_' >stray
[ -s stray ] && complain "visible without the prefix: $(head -3 stray)"

export PKG_CONFIG_PATH="$scratch/$lib/pkgconfig" LD_LIBRARY_PATH="$scratch/$lib"
for header in usr/include/foliage/*.h; do
	echo "#include <foliage/$(basename "$header")>"
done >program.c
cat >>program.c <<'PROGRAM'
#include <stdio.h>
int main(void)
{
	puts(foliage_version());
	return 0;
}
PROGRAM
cp program.c program.cc
version=$("$foliage" --version | sed -n 's/^foliage //p')
flags=$(pkg-config --cflags --libs foliage) || complain 'pkg-config does not find foliage'
# Built with a sanitizer, the library wants the program to be so as well.
for kind in address undefined thread; do
	grep -q "^FOLIAGE_SANITIZE:STRING=.*$kind" "$build/CMakeCache.txt" 2>/dev/null && flags="$flags -fsanitize=$kind"
done
same 'version of foliage.pc' "$(pkg-config --modversion foliage)" "$version"
for compiler in "${CC:-cc} program.c" "${CXX:-c++} program.cc"; do
	if ! command -v ${compiler% *} >/dev/null; then
		echo "SKIP: no ${compiler% *}"
		continue
	fi
	$compiler -Wall -Wextra -Werror $flags -o program 2>log || complain "$compiler: $(head -5 log)"
	same "$compiler" "$(./program)" "$version"
done
finish
