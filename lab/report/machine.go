package report

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

// Machine is the computer that a figure comes from. Without it, a figure means nothing.
type Machine struct {
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
	Cores    int     `json:"cores"`
	CPU      string  `json:"cpu"`       // "" where the system does not tell
	MemoryGB float64 `json:"memory_gb"` // of 2^30 bytes, 0 where the system does not tell
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

// String is the machine in one line.
func (m Machine) String() string {
	parts := []string{fmt.Sprintf("%s/%s, %s", m.OS, m.Arch, count(m.Cores, "core", "cores"))}
	if m.CPU != "" {
		parts = append(parts, m.CPU)
	}
	if m.MemoryGB > 0 {
		parts = append(parts, fmt.Sprintf("%.1f GiB memory", m.MemoryGB))
	}
	return strings.Join(parts, ", ")
}

// Versions names what the program was built with and from. The version, if not empty,
// is what the linker was told.
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

// field finds `key : value` in one of the kernel's text files.
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
