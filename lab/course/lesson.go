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

// mark matches what gives a part its structure. Each of the groups below is one kind of mark.
var mark = regexp.MustCompile("(?m)^ *```sh\n((?s:.*?)) *```\n?" + `|<!-- seen -->\n((?s:.*?))<!-- /seen -->` +
	`|^(Predict:|预测：)|^(\d+\. )|^(Why:|为什么：)|^ *- (.*?) *<!-- if (.*?) -->\n?|^ *<!-- answer: (\d+) -->\n?`)

const (
	_ = iota // all that it matches
	shell
	seen
	predict
	numbered
	why
	option
	condition
	answered
)

var (
	fence  = regexp.MustCompile("(?m)^ *```.*\n?")
	figure = regexp.MustCompile(`<!-- = (.*?) -->(.*?)<!-- / -->`)
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
		p := Part{Title: strings.TrimSpace(title), Kind: kindOf(strings.TrimSpace(title))}
		if err := p.read(text); err != nil {
			return l, fmt.Errorf("%s: %w", p.Title, err)
		}
		l.Parts = append(l.Parts, p)
	}
	return l, nil
}

// read reads the text of a part, mark by mark. The text between two marks belongs to the field that the first one began.
func (p *Part) read(text string) (err error) {
	if fence.MatchString(mark.ReplaceAllString(text, "")) {
		return errors.New("a block of code must be ```sh, or be between <!-- seen --> and <!-- /seen -->")
	}
	field, t, end := &p.Text, (*Question)(nil), 0
	begin := func() {
		p.Questions = append(p.Questions, Question{})
		t = &p.Questions[len(p.Questions)-1]
		field = &t.Ask
	}
	for _, at := range mark.FindAllStringSubmatchIndex(text, -1) {
		is := func(group int) bool { return at[2*group] >= 0 }
		of := func(group int) string { return text[at[2*group]:at[2*group+1]] }
		if is(predict) && p.Kind != Try || is(numbered) && p.Kind != Quiz || t == nil && (is(why) || is(option) || is(answered)) {
			continue // it is plain text here
		}
		*field += text[end:at[0]]
		end = at[1]
		if is(predict) || is(numbered) || is(shell) && (t == nil || len(t.Commands) > 0) || is(seen) && t == nil {
			begin()
		}
		switch {
		case is(shell):
			t.Commands, err = parseCommands(of(shell))
		case is(seen):
			t.Seen = strings.TrimSpace(fence.ReplaceAllString(of(seen), ""))
			field = &t.Why
		case is(why):
			field = &t.Why
		case is(option):
			t.Options = append(t.Options, Option{of(option), of(condition)})
		case is(answered):
			t.Answer, err = strconv.Atoi(of(answered))
		}
		if err != nil {
			return err
		}
	}
	*field += text[end:]
	p.Text = strings.Trim(p.Text, "\n")
	for i := range p.Questions {
		t := &p.Questions[i]
		t.Ask, t.Why = strings.TrimSpace(t.Ask), strings.TrimSpace(t.Why)
	}
	return nil
}
