package rig_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packageTools are stand-ins of Debian's programs, as a test may not change the packages of this
// machine. $DB lists the installed packages. The package mine needs liba.
var packageTools = map[string]string{
	"dpkg-query": `sed 's/$/:amd64 installed/' "$DB"; echo 'old:amd64 config-files'`,
	"dpkg":       `echo amd64`,
	"sudo":       `exec "$@"`,
	"apt-cache":  `printf 'mine\n  Depends: liba\nliba\n'`,
	"apt-get": `
names=$(echo "$*" | sed 's/.* remove //')
case " $* " in
*" -s "*)
	for name in $names; do
		echo "Remv $name [1.0]"
		[ "$name" != liba ] || ! grep -qx mine "$DB" || echo 'Remv mine [1.0]'
	done ;;
*" remove "*)
	for name in $names; do
		grep -vx "$name" "$DB" >"$DB.new" || true
		mv "$DB.new" "$DB"
	done ;;
*) exit 1 ;;
esac`,
}

// TestUninstall checks that packages.sh records the packages that an installation adds, and that
// uninstall.sh removes these, but no package that another one needs.
func TestUninstall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "with a space")
	db, record := filepath.Join(dir, "installed"), filepath.Join(dir, "state", "oversell", "installed")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range packageTools {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(db, []byte("base\neditor\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(want string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", args...)
		cmd.Env = append(os.Environ(), "DB="+db, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v: %v, %s, want %q", args, err, out, want)
		}
	}
	lines := func(file string, want ...string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if got := strings.Fields(string(text)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s: %v, %v, want %v", filepath.Base(file), got, err, want)
		}
	}
	install := func(name string) string { return `echo ` + name + ` >>"$DB"; ` }

	run("Nothing to remove", "uninstall.sh")
	run("", "-euc", ". ./packages.sh; before_install; "+install("redis-server")+install("liba")+"after_install")
	lines(record, "liba", "redis-server")
	run("", "-c", install("mine"))
	run("kept, as these packages need them: mine\n  liba\nremoving:\n  redis-server\n", "uninstall.sh")
	lines(db, "base", "editor", "liba", "mine")
	lines(record, "liba")
	if err := os.WriteFile(db, []byte("base\neditor\nliba\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("removing:\n  liba\n", "uninstall.sh")
	lines(db, "base", "editor")
	if _, err := os.Stat(record); !os.IsNotExist(err) {
		t.Errorf("the record remains: %v", err)
	}
}
