package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"oversell/api"
	"oversell/lab/comparison"
	"oversell/locks/catalog"
	"oversell/view/matrix"
)

// compared are the strategies of the course's comparison: three of the database, two of Redis, one
// each of ZooKeeper and etcd.
func compared() []string {
	return []string{"for-update", "get-lock", "db-row", "redis", "redlock", "zk", "etcd"}
}

// pairs are the hazards that need two databases. They were not run for all strategies.
func pairs() []api.Hazard { return []api.Hazard{"galera", "two-masters", "stale-read"} }

// writeCosts prints the length of each compared strategy's code, and the hazards that break it.
func writeCosts(inChinese bool) func(io.Writer) error {
	return func(w io.Writer) error {
		m, err := readJSON[matrix.Recorded](recordedMatrix)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(w)
		header := "| strategy | lines of code | hazards run | broken by | with a fencing token |"
		if inChinese {
			header = "| 策略 | 代码行数 | 试过的故障 | 被打破 | 加上栅栏令牌 |"
		}
		fmt.Fprintf(out, "%s\n|---|--:|--:|---|---|\n", header)
		for _, id := range compared() {
			lines, err := codeLines(id)
			if err != nil {
				return err
			}
			run, broken := harm(m.Matrix, id, false)
			fencedRun, fenced := harm(m.Matrix, id, true)
			fmt.Fprintf(out, "| `%s` | %d | %d | %s | %s |\n", id, lines, run, listed(broken, run, inChinese), listed(fenced, fencedRun, inChinese))
		}
		return out.Flush()
	}
}

// harm returns the number of hazards that were run on a strategy, and those that broke it.
func harm(m matrix.Matrix, id string, fenced bool) (run int, broken []string) {
	for _, row := range m.Rows {
		if row.Strategy != id || row.Fenced != fenced {
			continue
		}
		for _, hazard := range slices.Sorted(maps.Keys(row.Summaries)) {
			if slices.Contains(pairs(), hazard) {
				continue
			}
			run++
			if row.Summaries[hazard].Verdict.Class() == "harm" {
				broken = append(broken, "`"+string(hazard)+"`")
			}
		}
	}
	return run, broken
}

func listed(hazards []string, run int, inChinese bool) string {
	switch {
	case run == 0:
		return ""
	case len(hazards) > 0:
		return strings.Join(hazards, ", ")
	case inChinese:
		return fmt.Sprintf("%d 种都没有打破", run)
	}
	return fmt.Sprintf("none of %d", run)
}

// codeLines counts the lines of a strategy's own files, without empty lines and comments.
func codeLines(id string) (lines int, err error) {
	cards, err := comparison.Choose(catalog.Cards(), []string{id}, false)
	if err != nil {
		return 0, err
	}
	files, err := catalog.Source(cards[0])
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if path.Dir(f.Name) == "locks" {
			continue // shared by all strategies
		}
		for line := range strings.SplitSeq(f.Text, "\n") {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "--") {
				lines++
			}
		}
	}
	return lines, nil
}
