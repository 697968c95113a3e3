// Package suggest says which name was probably meant by a name that does not exist.
package suggest

import (
	"fmt"
	"strings"
)

// Unknown is the error for a name that does not exist.
type Unknown struct {
	Kind  string // such as "strategy"
	Name  string
	Known []string
}

// Error proposes the nearest name. If no name is near, it lists all of them.
func (u *Unknown) Error() string {
	text := fmt.Sprintf("%s %q does not exist", u.Kind, u.Name)
	if nearest := Nearest(u.Name, u.Known); nearest != "" {
		return fmt.Sprintf("%s; did you mean %q?", text, nearest)
	}
	return text + "; choose one of " + strings.Join(u.Known, ", ")
}

// Find returns the item with this name, or an *Unknown that lists the names of all.
func Find[T any](kind, name string, all []T, nameOf func(T) string) (found T, err error) {
	known := make([]string, len(all))
	for i, item := range all {
		if known[i] = nameOf(item); known[i] == name {
			return item, nil
		}
	}
	return found, &Unknown{kind, name, known}
}

// Nearest returns the name that needs the fewest edits, or "" if all names need too many. A name
// may differ in a third of its letters, or only begin or end with the wanted text.
func Nearest(wanted string, names []string) string {
	wanted = strings.ToLower(wanted)
	nearest, fewest := "", max(1, len([]rune(wanted))/3)+1
	for _, name := range names {
		if n := edits(wanted, name); n < fewest {
			nearest, fewest = name, n
		}
	}
	if nearest != "" || len(wanted) < 3 {
		return nearest
	}
	for _, name := range names {
		if strings.HasPrefix(name, wanted) || strings.HasSuffix(name, wanted) {
			return name
		}
	}
	return ""
}

// edits returns how many letters must be inserted, deleted, replaced or exchanged with their
// neighbour to make b from a: the optimal string alignment distance.
func edits(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := make([][]int, len(from)+1)
	for i := range rows {
		rows[i] = make([]int, len(to)+1)
		rows[i][0] = i
	}
	for j := range to {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			cost := 1
			if from[i-1] == to[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(from)][len(to)]
}
