package cli_test

import (
	"database/sql"
	"net/http"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestResetOnFullServer resets the stock while other clients use all connections that MySQL accepts from the user.
func TestResetOnFullServer(t *testing.T) {
	t.Parallel()
	lab := rigtest.Start(t, rig.Config{MySQL: true, Replicas: 1, Binary: built(), Token: token})
	base := lab.Addresses().Target
	awaitMySQL(t, base, "ok")
	others, err := sql.Open("mysql", lab.Addresses().MySQL)
	must(t, err)
	t.Cleanup(func() { _ = others.Close() })
	for range 2000 {
		if _, err = others.Conn(t.Context()); err != nil {
			break
		}
	}
	if err == nil {
		t.Fatal("the server accepts 2,000 connections: nothing is tested")
	}
	if r := ask(t, http.MethodPut, base, "/stock/1?count=5"); r.HTTP != http.StatusOK {
		t.Errorf("reset: %+v", r)
	}
	if r := ask(t, http.MethodPost, base, checkLock("atomic")); r.HTTP != http.StatusOK {
		t.Errorf("sale: %+v", r)
	}
}
