# Help, version, unknown commands, manual pages.
. "$(dirname "$0")/lib.sh"

run 0 --version
has out 'foliage '
for library in zstd zlib lzma; do has out "$library"; done
run 0 --help
commands='bench convert explain info mount mrc policies record replay report stat top tune'
for command in $commands; do
	has out "  $command "
	run 0 help $command
	mv out by_help
	run 0 $command --help
	cmp -s out by_help || complain "help $command and $command --help differ"
	grep -qi "^usage: foliage $command" out || complain "$command: no usage line"
	run 0 --help
done
run 2
[ -s out ] && complain "no command: usage goes to standard error"
has err 'usage: foliage COMMAND'

refuses "unknown command 'repaly', did you mean 'replay'?" repaly
refuses "unknown command 'polices', did you mean 'policies'?" help polices
refuses "unknown command 'xyzzy'" xyzzy
refuses "did you mean '--version'?" --versoin

mkdir pages
run 0 --man-all pages
same 'manual pages' "$(ls pages | tr '\n' ' ')" "$(printf 'foliage-%s.1 ' $commands)foliage.1 "
run 0 --man replay
cmp -s out pages/foliage-replay.1 || complain '--man and --man-all differ'
has pages/foliage-replay.1 '.SH SYNOPSIS'
has pages/foliage-replay.1 '.SH EXIT STATUS'
has pages/foliage-replay.1 '.B \-\-pages N,N,...'
# Every option of the help text is in the page.
run 0 replay --help
grep -oE -- '--[a-z-]+' out | sort -u | while read -r option; do
	grep -qF -- "$(echo "$option" | sed 's/-/\\-/g')" pages/foliage-replay.1 || echo "$option"
done >lost
[ -s lost ] && complain "not in the manual page: $(cat lost)"
if command -v groff >/dev/null; then
	for page in pages/*; do
		groff -ww -man -Tascii -z "$page" 2>warnings
		[ -s warnings ] && complain "groff on $page: $(head -3 warnings)"
	done
else
	echo 'SKIP: no groff, the manual pages were not typeset'
fi
refuses '--man-all needs a folder' --man-all
refuses 'nowhere' --man-all nowhere
finish
