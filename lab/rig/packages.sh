# Functions for the scripts that install packages, and for uninstall.sh: read this file with `.`. They record
# the packages that the project's commands installed, and not those that were there before.

# In a folder of the user: neither make clean nor a new clone may lose it.
recorded="${XDG_STATE_HOME:-$HOME/.local/state}/oversell/installed"

# all_packages lists the installed packages. It names an architecture only if it is not this machine's.
all_packages() {
	if command -v apt-get >/dev/null 2>&1; then
		# shellcheck disable=SC2016 # dpkg-query's own variables
		dpkg-query -W -f '${Package}:${Architecture} ${db:Status-Status}\n' |
			awk -v native=":$(dpkg --print-architecture)$" '$2 == "installed" { sub(native, "", $1); sub(/:all$/, "", $1); print $1 }'
	else
		brew list -1 --formula
	fi
}

# before_install must run before an installation, and after_install after it, even if it failed: some
# packages may be installed nevertheless.
before_install() {
	mkdir -p "$(dirname "$recorded")"
	: >>"$recorded" # if this fails, then before the installation
	packages_before=$(all_packages)
}

after_install() {
	packages_after=$(all_packages)
	# What was there before is listed at least twice.
	printf '%s\n' "$packages_before" "$packages_before" "$packages_after" | LC_ALL=C sort | LC_ALL=C uniq -u >>"$recorded"
}
