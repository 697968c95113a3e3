package course

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Section is a row of the table in docs/course/sections.md: a section of a document of the course.
type Section struct {
	Document, Name, Says string
	// Commands show the section. Without commands, the row has a link to a document.
	Commands []Command
}

var span = regexp.MustCompile("`([^`]+)`")

// Sections reads the table of all sections.
func Sections(docs fs.FS) (all []Section, err error) {
	text, err := fs.ReadFile(docs, "course/sections.md")
	if err != nil {
		return nil, fmt.Errorf("course: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| document |") {
			continue
		}
		section, err := sectionOf(cells)
		if err != nil {
			return nil, fmt.Errorf("course: sections.md: %s: %w", line, err)
		}
		all = append(all, section)
	}
	return all, nil
}

func sectionOf(cells []string) (s Section, err error) {
	if len(cells) != 4 {
		return s, fmt.Errorf("%d cells, want 4", len(cells))
	}
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
		if cells[i] == "" {
			return s, errors.New("a cell is empty")
		}
	}
	s = Section{Document: cells[0], Name: cells[1], Says: cells[2]}
	for _, found := range span.FindAllStringSubmatch(cells[3], -1) {
		command, err := parseCommand(found[1])
		if err != nil {
			return s, err
		}
		s.Commands = append(s.Commands, command)
	}
	if len(s.Commands) == 0 && !strings.Contains(cells[3], "](") {
		return s, errors.New("neither a command nor a link")
	}
	return s, nil
}
