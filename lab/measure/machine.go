package measure

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// Machine describes the computer on which the figures were measured.
type Machine struct {
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
	Cores    int     `json:"cores"`
	CPU      string  `json:"cpu"`       // empty if unknown
	MemoryGB float64 `json:"memory_gb"` // of 2^30 bytes; 0 if unknown
	// LoadCores is the number of cores to which the load was pinned, apart from the servers; 0 if it was not.
	LoadCores int `json:"load_cores,omitempty"`
}

// ThisMachine describes the computer that runs the load.
func ThisMachine(ctx context.Context) Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	switch runtime.GOOS {
	case "linux":
		if proc, err := procfs.NewDefaultFS(); err == nil {
			cpus, _ := proc.CPUInfo()
			for _, cpu := range cpus {
				m.CPU = cpu.ModelName
			}
			if memory, err := proc.Meminfo(); err == nil && memory.MemTotalBytes != nil {
				m.MemoryGB = gigabytes(float64(*memory.MemTotalBytes))
			}
		}
	case "darwin":
		m.CPU = sysctl(ctx, "machdep.cpu.brand_string")
		bytes, _ := strconv.ParseFloat(sysctl(ctx, "hw.memsize"), 64)
		m.MemoryGB = gigabytes(bytes)
	}
	return m
}

// String describes the machine in one line.
func (m Machine) String() string {
	parts := []string{fmt.Sprintf("%s/%s, %s", m.OS, m.Arch, Count(m.Cores, "core", "cores"))}
	if m.LoadCores > 0 {
		parts = append(parts, fmt.Sprintf("%d of them for the load", m.LoadCores))
	}
	if m.CPU != "" {
		parts = append(parts, m.CPU)
	}
	if m.MemoryGB > 0 {
		parts = append(parts, fmt.Sprintf("%.1f GiB memory", m.MemoryGB))
	}
	return strings.Join(parts, ", ")
}

// MostLoad returns the share of the cores that the load may take: a third, or, if it has cores of its own, four fifths
// of these. With more, the figures would be those of the load.
func (m Machine) MostLoad() float64 {
	if m.LoadCores > 0 {
		return 0.8 * float64(m.LoadCores) / float64(m.Cores)
	}
	return 1.0 / 3
}

// Versions returns the versions of Go and of the program, and the program's commit.
func Versions(version string) map[string]string {
	v := map[string]string{"go": runtime.Version()}
	if version != "" {
		v["oversell"] = version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			v["commit"] = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			v["commit_state"] = "with uncommitted changes"
		}
	}
	return v
}

func sysctl(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sysctl", "-n", name).Output() //nolint:gosec // two constant names
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func gigabytes(bytes float64) float64 { return round(bytes/(1<<30), 1) }
