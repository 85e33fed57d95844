# Completion in bash: a fresh shell sources what the tool writes and is asked what it would offer.
. "$(dirname "$0")/lib.sh"
run 0 --completion bash
mv out completion
refuses 'only bash' --completion fish
refuses 'only bash' --completion
bash -n completion || complain 'not bash'

# offers WORD...: what is offered for the last of them, as bash cuts words.
offers() {
	bash -c '. ./completion; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _foliage; echo "${COMPREPLY[*]}"' bash "$@"
}
same 'a command' "$(offers foliage rep)" 'replay report'
same 'help' "$(offers foliage help mr)" 'mrc'
same 'an option' "$(offers foliage mrc --sam)" '--sample'
same 'a short option' "$(offers foliage mrc x -j | tr ' ' '\n' | grep -c '^-j$')" 1
same 'a choice' "$(offers foliage mrc --format '')" 'table csv json'
same 'a choice after =' "$(offers foliage mrc --format = c)" 'csv'
same 'a policy' "$(offers foliage replay t --policy s3)" 's3fifo'
same 'a second policy' "$(offers foliage replay t -p lru,s3)" 'lru,s3fifo'
same 'a policy by name' "$(offers foliage policies bela)" 'belady'
same 'a suite' "$(offers foliage bench fio-re)" 'fio-read'
same 'a file' "$(offers foliage replay dat)" ''
same 'nothing for an unknown command' "$(offers foliage nonsense --x)" ''

# Every option that a help text begins a line with is offered, and every command is.
"$foliage" --help | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p' >commands
[ -s commands ] || complain 'no commands'
while read -r command; do
	offers foliage "$command" - | tr ' ' '\n' >offered
	"$foliage" help "$command" | sed -n 's/^  \(-[^ ].*\)/\1/p' | sed 's/  .*//' | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' |
		tr -d ' ,' | sort -u >described
	while read -r option; do
		grep -qx -- "$option" offered || complain "foliage $command $option is not offered"
	done <described
done <commands
finish
