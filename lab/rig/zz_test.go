package rig_test

import (
	"bytes"
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

func TestZZ(t *testing.T) {
	for i := range 40 {
		cfg := everything()
		cfg.Replicas, cfg.Nginx = 0, false
		r := rigtest.Start(t, cfg)
		s, _ := r.Server("zookeeper")
		zkWrite(t, r.Addresses().Zookeeper)
		pid := s.PID()
		b := time.Now()
		ctx, c := context.WithTimeout(t.Context(), 6*time.Second)
		timer := time.AfterFunc(4*time.Second, func() { _ = syscall.Kill(pid, syscall.SIGQUIT) })
		err := s.Stop(ctx)
		timer.Stop()
		c()
		t.Logf("%d stop %v %v", i, time.Since(b), err)
		if err != nil {
			text, _ := os.ReadFile(s.Log())
			t.Log(string(text))
			return
		}
		text, _ := os.ReadFile(s.Log())
		if bytes.Contains(text, []byte("NullPointer")) {
			t.Log("NPE")
		}
		r.Close()
	}
	_ = rig.Config{}
}
