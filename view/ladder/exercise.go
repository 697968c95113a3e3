package ladder

import (
	"slices"
	"strings"

	"oversell/lab/exercise"
	"oversell/view/terminal"
)

// exerciseLetters is the length to which a statement of the first session or its reply is cut, and a line of a comment.
// The output of the command has all of it.
const exerciseLetters = 64

// OfExercise returns the picture of an exercise that got the replies of its file. Its rungs are in the order of the
// statements, without times.
func OfExercise(e exercise.Exercise, language string) Ladder {
	l := Ladder{Title: e.Title.In(language)}
	moves := e.Moves()
	for _, m := range moves {
		if name := m.Session; name != "" && !slices.ContainsFunc(l.Columns, func(c Column) bool { return c.Name == name }) {
			l.Columns = append(l.Columns, Column{Name: name, Client: true})
		}
	}
	slices.SortFunc(l.Columns, func(a, b Column) int { return strings.Compare(a.Name, b.Name) })
	server := len(l.Columns)
	names := map[string]string{"mysql": "MySQL", "redis": "Redis", "zk": "ZooKeeper"}
	l.Columns = append(l.Columns, Column{Name: names[moves[slices.IndexFunc(moves, func(m exercise.Move) bool { return m.Server != "" })].Server]})
	for _, m := range moves {
		if m.Session == "" {
			for _, line := range terminal.Wrap(strings.ReplaceAll(m.Words.In(language), "\n", " "), exerciseLetters, exerciseLetters) {
				l.Rungs = append(l.Rungs, Rung{Kind: Remark, Words: line})
			}
			continue
		}
		client := slices.IndexFunc(l.Columns, func(c Column) bool { return c.Name == m.Session })
		letters := max(24, exerciseLetters-22*client)
		r := Rung{Column: client, From: client, To: client, Words: shortened([]string{m.Words.In(language)}, letters), Detail: shortened([]string{m.Reply}, letters)}
		if m.Server != "" {
			r.To = server
		}
		l.Rungs = append(l.Rungs, r)
	}
	return l
}
