package trial

import (
	"context"
	"os/exec"
	"slices"
	"syscall"

	"oversell/lab/experiment"
	"oversell/lab/rig"
	"oversell/locks/adapter"
)

// Lock is a lock on trial: the program that offers it, and what its hello says.
type Lock struct {
	Command string // as the user typed it
	Hello   adapter.Hello

	line string // for the shell
}

// Greet starts a program without any server, for its hello only. So an error in its command or in its
// hello is found before a lab starts. The line is for the shell. The command is what reports show.
func Greet(ctx context.Context, line, command string) (Lock, error) {
	program, err := adapter.Start(ctx, func() *exec.Cmd {
		cmd := adapter.Shell(line, "", nil)()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children end with it
		return cmd
	}, nil)
	if err != nil {
		return Lock{}, err
	}
	defer program.Close()
	return Lock{Command: command, Hello: program.Hello(), line: line}, nil
}

// needsPostgres reports whether a lab for the lock needs a PostgreSQL, which other labs do not have.
func (l Lock) needsPostgres() bool { return slices.Contains(l.Hello.Backends, "postgres") }

// ContractLab changes the settings of a lab to those of the contract: only its servers.
func (l Lock) ContractLab(cfg *rig.Config) {
	cfg.Replicas, cfg.Nginx, cfg.Postgres = 0, false, l.needsPostgres()
}

// HazardLab changes the settings of a lab to those of experiments, with the lock's program beside
// each replica.
func (l Lock) HazardLab(cfg *rig.Config) {
	onExit := cfg.OnExit
	*cfg = experiment.Config(cfg.Binary, cfg.Token)
	cfg.OnExit, cfg.Postgres, cfg.ReplicaArgs = onExit, l.needsPostgres(), append(cfg.ReplicaArgs, "--adapter", l.line)
}
