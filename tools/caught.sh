#!/bin/sh
# Puts each of thirty bugs into a copy of the checkout, and runs the tests of make test that should find it:
# fourteen bugs in strategies that explore can run (trial/explore/testdata/mutations), six in strategies of etcd and
# MySQL, and ten in the service, the checks and the page (tools/mutations). A line "found by" names the package, and
# the test if not all of them are needed. It fails if fewer than 24 are found, or if a patch does not apply or compile.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}
root=$PWD
work=$(mktemp -d "${TMPDIR:-/tmp}/oversell-caught.XXXXXX")
trap 'git worktree remove --force "$work/copy" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
git worktree add --quiet --detach "$work/copy" HEAD

found=0 all=0
for patch in trial/explore/testdata/mutations/*.patch tools/mutations/*.patch; do
	name=$(basename "$patch" .patch)
	all=$((all + 1))
	by=$(sed -n 's/^found by: //p' "$patch")
	package=${by%% *} chosen=.
	case $by in
	"") # the search finds it
		package=./trial/explore
		chosen="^TestCorrect\$/^$name\$"
		;;
	*" "*) chosen=${by#* } ;;
	esac
	cd "$work/copy"
	git checkout --quiet .
	git apply "$root/$patch"
	CGO_ENABLED=0 "$GO" build -tags nomsgpack -trimpath -buildvcs=false -o "$work/oversell" .
	if OVERSELL_PROGRAM=$work/oversell "$GO" test -tags nomsgpack -trimpath -vet=off -count=1 -failfast -timeout 20m -run "$chosen" "$package" >"$work/$name.log" 2>&1; then
		echo "$name: NOT FOUND by $package"
	else
		found=$((found + 1))
		echo "$name: found by $package: $(sed -n 's/^ *--- FAIL: \([^ ]*\).*/\1/p' "$work/$name.log" | tail -n 1)"
		grep -q -- '--- FAIL' "$work/$name.log" || { # not a test: it does not compile
			cat "$work/$name.log"
			exit 1
		}
	fi
	cd "$root"
done
echo "make test finds $found of $all bugs"
[ "$found" -ge 24 ]
