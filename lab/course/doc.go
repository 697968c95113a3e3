// Package course reads the lessons of the course and runs their commands.
//
// A lesson is a Markdown file. Its parts begin with a heading of the second level. A part may have
// questions: a question with options, the commands that answer it, and what was seen. Each option has
// a condition over the result of the commands, so the right option is computed, never written.
package course
