package rig_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestPostgres kills PostgreSQL and its pooler, and starts them again on their data. A killed
// PostgreSQL must leave no shared memory.
func TestPostgres(t *testing.T) {
	rigtest.Nightly(t, "TestServersStopAndStart of ./lab/rig, for the other servers")
	before := segments(t)
	r := rigtest.Start(t, rig.Config{Postgres: true})
	if env := r.Addresses().ServeEnv(); len(env) != 2 || !strings.HasPrefix(env[0], "POSTGRES_URL=postgres://") || !strings.HasPrefix(env[1], "PGBOUNCER_URL=postgres://") {
		t.Errorf("environment: %q", env)
	}
	for _, s := range r.Servers() {
		s.Kill()
		if err := s.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, url := range []string{r.Addresses().Postgres, r.Addresses().Pgbouncer} {
		if v, err := backend.PostgresVersion(t.Context(), url); err != nil || !strings.HasPrefix(v, "1") {
			t.Errorf("version of %s: %q, %v", url, v, err)
		}
		for _, stranger := range []string{"postgres://oversell@", "postgres://oversell:wrong@", "postgres://postgres@"} {
			_, at, _ := strings.Cut(url, "@")
			if _, err := backend.PostgresVersion(t.Context(), stranger+at); err == nil {
				t.Errorf("%s is let in without the password", stranger)
			}
		}
	}
	deletesLocks(t, r.Addresses().Postgres)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range segments(t) {
		if !slices.Contains(before, s) {
			t.Errorf("shared memory is left: %s", s)
		}
	}
}

// segments lists the segments of shared memory without a process.
func segments(t *testing.T) (left []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil // PostgreSQL removes its segment at its next start
	}
	out, err := exec.CommandContext(t.Context(), "ipcs", "-m").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) >= 6 && words[5] == "0" {
			left = append(left, words[1])
		}
	}
	return left
}

// deletesLocks checks that an operator deletes the rows of each table, but not one that a transaction has locked, and
// that the end of the sessions frees it.
func deletesLocks(t *testing.T, url string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), url)
	must(err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), `CREATE TABLE "my locks" (name text); INSERT INTO "my locks" VALUES ('a'), ('b')`)
	must(err)
	if rows, err := backend.DeletePostgresRows(t.Context(), url); rows != 2 || err != nil {
		t.Errorf("%d rows are deleted, want 2: %v", rows, err)
	}
	for _, statement := range []string{`INSERT INTO "my locks" VALUES ('c')`, `BEGIN`, `SELECT * FROM "my locks" FOR UPDATE`} {
		_, err = conn.Exec(t.Context(), statement)
		must(err)
	}
	if rows, err := backend.DeletePostgresRows(t.Context(), url); rows != 0 || err != nil {
		t.Errorf("%d rows are deleted, want none, because it is locked: %v", rows, err)
	}
	if sessions, err := backend.EndPostgresSessions(t.Context(), url); sessions == 0 || err != nil {
		t.Errorf("%d sessions are ended: %v", sessions, err)
	}
	if rows, err := backend.DeletePostgresRows(t.Context(), url); rows != 1 || err != nil {
		t.Errorf("%d rows are deleted after the end of the session, want 1: %v", rows, err)
	}
}
