package measure

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
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
		m.CPU = field("/proc/cpuinfo", "model name")
		kib, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
		m.MemoryGB = gigabytes(kib, 1<<10)
	case "darwin":
		m.CPU = sysctl(ctx, "machdep.cpu.brand_string")
		m.MemoryGB = gigabytes(sysctl(ctx, "hw.memsize"), 1)
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

// field returns the value of a line "key : value" in a text file of the kernel.
func field(path, key string) string {
	file, err := os.Open(path) //nolint:gosec // two constant paths
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
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

func gigabytes(number string, unit float64) float64 {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return round(n*unit/(1<<30), 1)
}
