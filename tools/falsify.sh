#!/bin/sh
# Makes each claim to survive a hazard false, and sees whether its experiment contradicts the card. A line of
# tools/mutations/claims.tsv has a hazard, a strategy, the patch in tools/mutations/claims that makes the claim false,
# and the verdict of `oversell break HAZARD STRATEGY` with the patch, which this script writes. It fails if one is no
# harm. Without a patch, make break runs the same experiments, and docs/matrix.json has their verdicts. After an
# interruption it continues: its logs are in results/falsify. PATCHES: it takes only these.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
root=$PWD table=tools/mutations/claims.tsv logs=results/falsify
mkdir -p "$logs"
work=$(mktemp -d "${TMPDIR:-/tmp}/oversell-falsify.XXXXXX")
trap 'git worktree remove --force "$work/copy" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
git worktree add --quiet --detach "$work/copy" HEAD

# patched PATCH: builds the program with the patch, once.
patched() {
	[ ! -e "$work/$1" ] || return 0
	(cd "$work/copy" && git checkout --quiet . && git apply "$root/tools/mutations/claims/$1.patch" &&
		CGO_ENABLED=0 "$GO" build -tags nomsgpack -trimpath -buildvcs=false -o "$work/$1" .)
}

# runs PATCH: the lines of the table with this patch, as: hazard, "--fenced" or nothing, strategies.
runs() {
	awk -F '\t' -v patch="$1" '
		$3 == patch {
			run = $1 " " ($2 ~ / --fenced$/ ? "--fenced" : "")
			sub(/ --fenced$/, "", $2)
			if (!(run in all)) order[++n] = run
			all[run] = all[run] " " $2
		}
		END { for (i = 1; i <= n; i++) print order[i] all[order[i]] }' "$table"
}

: >"$work/seen"
for patch in ${PATCHES:-$(cut -f 3 "$table" | sort -u)}; do
	runs "$patch" >"$work/runs"
	while read -r hazard strategies; do
		case $strategies in
		--fenced*) log=$logs/$patch-$hazard-fenced.txt ;;
		*) log=$logs/$patch-$hazard.txt ;;
		esac
		if [ ! -e "$log" ]; then
			patched "$patch"
			echo "$patch: oversell break $hazard $strategies"
			# The exit status 1 says that a card is wrong. An experiment that was not carried out has no verdicts. Where the
			# seed chooses the order, it is 12: the holder stops before its write until the contender has sold.
			# shellcheck disable=SC2086
			TMPDIR=$work "$work/$patch" break "$hazard" --seed 12 --quiet $strategies >"$log.new" 2>&1 </dev/null || true
			mv "$log.new" "$log"
		fi
		# ✗ redis --fenced  broken, but its card claims otherwise: 2 sold, 1 taken from stock.
		sed -n "s/^[^ a-z]* \([a-z][a-z-]*\( --fenced\)\{0,1\}\)  *\([a-z ]*\)[,:].*/$hazard	$patch	\1	\3/p" "$log" >>"$work/seen"
	done <"$work/runs"
	rm -f "${work:?}/$patch"
done

awk -F '\t' -v OFS='\t' '
	FILENAME == ARGV[1] { seen[$1, $3, $2] = $4; next }
	($1, $2, $3) in seen { $4 = seen[$1, $2, $3] }
	{ print }' "$work/seen" "$table" >"$work/table"
cp "$work/table" "$table"
awk -F '\t' '
	$4 !~ /^(broken|stalled|aborted|wasteful)$/ { print $1 ", " $2 " with " $3 ": " $4; wrong++ }
	END { print NR - wrong " of " NR " claims were contradicted"; exit wrong > 0 }' "$table"
