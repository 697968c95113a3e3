package measure_test

import (
	"runtime"
	"strings"
	"testing"

	"oversell/lab/measure"
)

func TestThisMachine(t *testing.T) {
	m := measure.ThisMachine(t.Context())
	if m.OS != runtime.GOOS || m.Arch != runtime.GOARCH || m.Cores < 1 {
		t.Errorf("%+v", m)
	}
	if m.MemoryGB <= 0 && (runtime.GOOS == "linux" || runtime.GOOS == "darwin") {
		t.Errorf("no memory: %+v", m)
	}
}

func TestMachineInOneLine(t *testing.T) {
	full := measure.Machine{OS: "linux", Arch: "arm64", Cores: 4, CPU: "Cortex", MemoryGB: 7.5}
	if got := full.String(); got != "linux/arm64, 4 cores, Cortex, 7.5 GiB memory" {
		t.Error(got)
	}
	full.LoadCores = 1
	if got := full.String(); !strings.HasPrefix(got, "linux/arm64, 4 cores, 1 of them for the load, ") || full.MostLoad() != 0.2 {
		t.Error(got, full.MostLoad())
	}
	if got := (measure.Machine{OS: "plan9", Arch: "386", Cores: 1}).String(); got != "plan9/386, 1 core" {
		t.Error(got)
	}
}

func TestVersions(t *testing.T) {
	v := measure.Versions("1.2.3")
	if v["oversell"] != "1.2.3" || !strings.HasPrefix(v["go"], "go") {
		t.Errorf("%v", v)
	}
	if _, ok := measure.Versions("")["oversell"]; ok {
		t.Error("a version out of nothing")
	}
}
