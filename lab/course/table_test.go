package course_test

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"oversell/lab/course"
)

// section is a row of the table in sections.md: a section of a document of the course.
type section struct {
	Document, Name, Says string
	// Commands show the section. Without commands, the row has a link to a document.
	Commands []course.Command
}

var span = regexp.MustCompile("`([^`]+)`")

// sectionsOf reads the table of all sections in a language.
func sectionsOf(docs fs.FS, lang string) (all []section, err error) {
	file := course.File("sections", lang)
	text, err := fs.ReadFile(docs, file)
	if err != nil {
		return nil, fmt.Errorf("course: %w", err)
	}
	_, rows, _ := strings.Cut(string(text), "\n|--") // below the heading of the table
	for line := range strings.Lines(rows) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		row, err := sectionOf(strings.Split(strings.Trim(line, "| "), "|"))
		if err != nil {
			return nil, fmt.Errorf("course: %s: %s: %w", file, line, err)
		}
		all = append(all, row)
	}
	return all, nil
}

func sectionOf(cells []string) (s section, err error) {
	if len(cells) != 4 {
		return s, fmt.Errorf("%d cells, want 4", len(cells))
	}
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
		if cells[i] == "" {
			return s, errors.New("a cell is empty")
		}
	}
	s = section{Document: cells[0], Name: cells[1], Says: cells[2]}
	for _, found := range span.FindAllStringSubmatch(cells[3], -1) {
		command, err := course.ParseCommand(found[1])
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
