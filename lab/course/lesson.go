package course

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Lesson is one file of the course.
type Lesson struct {
	Name   string // of the file, without .md
	Title  string // such as "3. Row locks"
	About  string // the documents and sections that it follows, and its length
	Parts  []Part
	source string
}

// Part is a section of a lesson. All its texts are Markdown.
type Part struct {
	Title string
	Kind  Kind
	Text  string // before the questions
	// Questions are the questions and commands of the part. Most parts have none.
	Questions []Question
}

// Kind tells the parts apart that the page shows in a special way.
type Kind string

// The kinds of parts.
const (
	Plain Kind = ""
	Try   Kind = "try"
	Quiz  Kind = "quiz"
	Notes Kind = "notes" // for the teacher only
)

// Question is a question to the class, and the commands that answer it.
type Question struct {
	Ask      string
	Options  []Option // may be empty: then the commands are only run
	Commands []Command
	Seen     string // what the commands printed when the lesson was recorded
	Answer   int    // the number of the option that was right then, from 1; 0 before the first record
	Why      string
}

// Right returns the text of the option that was right in the recorded run, or "".
func (t Question) Right() string {
	if t.Answer < 1 || t.Answer > len(t.Options) {
		return ""
	}
	return t.Options[t.Answer-1].Text
}

// Option is an answer that the class may choose. It is right if the Condition is true.
type Option struct {
	Text, Condition string
}

// Languages are the languages of the course. The lessons in Chinese are in the folder zh.
func Languages() []string { return []string{"en", "zh"} }

func folder(lang string) string {
	if lang == "zh" {
		return "course/zh"
	}
	return "course"
}

// File returns the path of a lesson in the folder docs.
func File(name, lang string) string { return folder(lang) + "/" + name + ".md" }

var lessonFile = regexp.MustCompile(`^(\d\d-[a-z0-9-]+|comparison)\.md$`)

// Lessons reads the lessons in a language, in the order of their numbers. The comparison is last.
func Lessons(docs fs.FS, lang string) (all []Lesson, err error) {
	entries, err := fs.ReadDir(docs, folder(lang))
	if err != nil {
		return nil, fmt.Errorf("course: %w", err)
	}
	for _, entry := range entries {
		if !lessonFile.MatchString(entry.Name()) {
			continue
		}
		file := path.Join(folder(lang), entry.Name())
		text, err := fs.ReadFile(docs, file)
		if err != nil {
			return nil, fmt.Errorf("course: %w", err)
		}
		lesson, err := parse(strings.TrimSuffix(entry.Name(), ".md"), string(text))
		if err != nil {
			return nil, fmt.Errorf("course: %s: %w", file, err)
		}
		all = append(all, lesson)
	}
	return all, nil
}

// Questions returns the questions of all parts.
func (l Lesson) Questions() (all []Question) {
	for _, p := range l.Parts {
		all = append(all, p.Questions...)
	}
	return all
}

var (
	predict  = regexp.MustCompile(`^(Predict:|预测：)\s*`)
	why      = regexp.MustCompile(`^(Why:|为什么：)\s*`)
	numbered = regexp.MustCompile(`^\d+\.\s+`)
	option   = regexp.MustCompile(`^\s*- (.*?)\s*<!-- if (.*?) -->$`)
	answered = regexp.MustCompile(`^\s*<!-- answer: (\d+) -->$`)
	figure   = regexp.MustCompile(`<!-- = (.*?) -->(.*?)<!-- / -->`)
)

func kindOf(title string) Kind {
	switch {
	case strings.HasPrefix(title, "Try it:"), strings.HasPrefix(title, "动手："):
		return Try
	case title == "Quiz", title == "测验":
		return Quiz
	case title == "Notes for the teacher", title == "教师备注":
		return Notes
	}
	return Plain
}

func parse(name, source string) (Lesson, error) {
	source = strings.ReplaceAll(source, "\r\n", "\n") // of a file that was edited on Windows
	head, body, _ := strings.Cut(source, "\n## ")
	title, about, _ := strings.Cut(strings.TrimSpace(head), "\n")
	l := Lesson{Name: name, Title: strings.TrimPrefix(title, "# "), About: strings.TrimSpace(about), source: source}
	if l.Title == title {
		return l, errors.New("the first line must be a heading: # 1. Title")
	}
	for _, text := range strings.Split(body, "\n## ") {
		title, text, _ := strings.Cut(text, "\n")
		r := &partReader{part: Part{Title: strings.TrimSpace(title), Kind: kindOf(strings.TrimSpace(title))}, to: &strings.Builder{}}
		for i, line := range strings.Split(text, "\n") {
			if err := r.read(line); err != nil {
				return l, fmt.Errorf("%s, line %d: %w", r.part.Title, i+1, err)
			}
		}
		r.flush()
		l.Parts = append(l.Parts, r.part)
	}
	return l, nil
}

// partReader reads a part line by line. Plain lines are text of the field that to collects.
type partReader struct {
	part     Part
	question *Question // the last element of part.Questions, or nil
	field    *string
	to       *strings.Builder
	block    string // the fence or comment in which the reader is: sh, text, seen
}

func (r *partReader) read(line string) error {
	trimmed := strings.TrimSpace(line)
	switch {
	case r.block != "":
		return r.inBlock(trimmed, line)
	case trimmed == "```sh":
		r.block = "sh"
		if r.question == nil || len(r.question.Commands) > 0 {
			r.begin("")
		}
	case trimmed == "<!-- seen -->":
		r.block = "seen"
		r.collect(&r.current().Seen)
	case r.part.Kind == Try && predict.MatchString(line):
		r.begin(predict.ReplaceAllString(line, ""))
	case r.part.Kind == Quiz && numbered.MatchString(line):
		r.begin(numbered.ReplaceAllString(line, ""))
	case r.question != nil && why.MatchString(line):
		r.collect(&r.question.Why)
		r.text(why.ReplaceAllString(line, ""))
	case r.question != nil && option.MatchString(line):
		found := option.FindStringSubmatch(line)
		r.question.Options = append(r.question.Options, Option{found[1], found[2]})
	case r.question != nil && answered.MatchString(line):
		r.question.Answer, _ = strconv.Atoi(answered.FindStringSubmatch(line)[1]) // digits, by the pattern
	case strings.HasPrefix(trimmed, "```"):
		return errors.New("a block of code must be ```sh, or be between <!-- seen --> and <!-- /seen -->")
	default:
		r.text(line)
	}
	return nil
}

func (r *partReader) inBlock(trimmed, line string) error {
	switch {
	case r.block == "sh" && trimmed == "```", r.block == "seen" && trimmed == "<!-- /seen -->":
		if r.block == "seen" {
			r.collect(&r.question.Why)
		}
		r.block = ""
	case r.block == "seen":
		if !strings.HasPrefix(trimmed, "```") {
			r.text(line)
		}
	case trimmed != "":
		command, err := ParseCommand(trimmed)
		if err != nil {
			return err
		}
		if command.Text != "" {
			r.question.Commands = append(r.question.Commands, command)
		}
	}
	return nil
}

func (r *partReader) current() *Question {
	if r.question == nil {
		r.begin("")
	}
	return r.question
}

func (r *partReader) begin(ask string) {
	r.flush()
	r.part.Questions = append(r.part.Questions, Question{})
	r.question = &r.part.Questions[len(r.part.Questions)-1]
	r.collect(&r.question.Ask)
	r.text(ask)
}

// collect makes field receive the lines of text that follow.
func (r *partReader) collect(field *string) {
	r.flush()
	r.field = field
}

func (r *partReader) text(line string) { fmt.Fprintln(r.to, line) }

func (r *partReader) flush() {
	text := strings.Trim(r.to.String(), "\n")
	r.to.Reset()
	switch {
	case r.field == nil && r.question == nil:
		r.part.Text = text
	case r.field != nil && strings.TrimSpace(text) != "":
		*r.field = strings.TrimSpace(*r.field + "\n" + text)
	}
}

// Conditions returns the conditions of the options and the expressions of the figures.
func (l Lesson) Conditions() (all []string) {
	for _, t := range l.Questions() {
		for _, o := range t.Options {
			all = append(all, o.Condition)
		}
	}
	for _, found := range figure.FindAllStringSubmatch(l.source, -1) {
		all = append(all, found[1])
	}
	return all
}
