package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"oversell/lab/load"
)

// users are the groups of processes that need processor time for a sale, and idle is what they leave of the cores.
var users = []string{"load", "nginx", "replica", "mysql", "redis", "idle"}

// processors measures how much processor time a sale takes, by the processes that take it.
func (b *bench) processors(ctx context.Context) error {
	names := []string{empty, "combining", "redis-stock", "atomic", "for-update", "redis"}
	measured, err := inTurn(b, names, func(name string) (figures, error) {
		before, err := b.processorTimes()
		if err != nil {
			return figures{}, err
		}
		f, err := b.purchases(ctx, name)
		if err != nil {
			return f, err
		}
		after, err := b.processorTimes()
		f.spent = map[string]float64{}
		for user := range after {
			f.spent[user] = float64((after[user] - before[user]).Microseconds()) / float64(max(1, f.Sold))
		}
		return f, err
	})
	if err != nil {
		return err
	}
	b.printf("## Processor time\n\nMicroseconds of the cores for a sale, by process, and idle; %d clients through nginx for %v, in random order, "+
		"%d rounds. Medians; in brackets their 95 %% intervals.\n\n", b.clients, b.length, b.rounds)
	columns := []column{median("sold /s", rate, 0)}
	for _, user := range users {
		columns = append(columns, median(user, func(f figures) float64 { return f.spent[user] }, 1))
	}
	b.table("strategy", names, measured, columns...)
	return nil
}

// processorTimes returns the times that the users have taken until now. It reads each process once, because the
// reading is a part of the load. A server has a process group of its own.
func (b *bench) processorTimes() (map[string]time.Duration, error) {
	machine, err := load.ReadProcessor()
	if err != nil {
		return nil, err
	}
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	groups := map[int]string{}
	for _, server := range b.rig.Servers() {
		groups[server.PID()], _, _ = strings.Cut(server.Name(), "-")
	}
	all := map[string]time.Duration{"idle": machine.Total - machine.Busy}
	for _, process := range processes {
		stat, ended := process.Stat()
		user := groups[stat.PGRP]
		if process.PID == os.Getpid() {
			user = "load"
		}
		if ended == nil {
			all[user] += time.Duration(stat.CPUTime() * float64(time.Second))
		}
	}
	return all, nil
}
