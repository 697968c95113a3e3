package course_test

import (
	"bytes"
	"errors"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"testing/fstest"

	"oversell/docs"
	"oversell/lab/course"
)

// TestLanguagesAgree checks that each Chinese lesson has the same parts, commands, conditions and
// figures as the English one.
func TestLanguagesAgree(t *testing.T) {
	t.Parallel()
	lessons := map[string][]course.Lesson{}
	for _, lang := range course.Languages() {
		all, err := course.Lessons(docs.Course, lang)
		if err != nil {
			t.Fatal(err)
		}
		lessons[lang] = all
	}
	if len(lessons["en"]) != len(lessons["zh"]) {
		t.Fatalf("%d lessons in English, %d in Chinese", len(lessons["en"]), len(lessons["zh"]))
	}
	for i, en := range lessons["en"] {
		zh := lessons["zh"][i]
		kinds := func(l course.Lesson) (all []course.Kind) {
			for _, p := range l.Parts {
				all = append(all, p.Kind)
			}
			return all
		}
		if en.Name != zh.Name || !slices.Equal(kinds(en), kinds(zh)) {
			t.Errorf("%s: parts %q, in Chinese (%s) %q", en.Name, kinds(en), zh.Name, kinds(zh))
		}
		if !slices.Equal(sorted(en.Conditions()), sorted(zh.Conditions())) {
			t.Errorf("%s: the conditions and figures differ:\n%q\n%q", en.Name, en.Conditions(), zh.Conditions())
		}
		if !slices.Equal(shape(en), shape(zh)) {
			t.Errorf("%s: the questions differ:\n%q\n%q", en.Name, shape(en), shape(zh))
		}
	}
}

// TestSectionsAgree checks that the Chinese table has the same documents, sections and commands.
func TestSectionsAgree(t *testing.T) {
	t.Parallel()
	en, err1 := sectionsOf(docs.Course, "en")
	zh, err2 := sectionsOf(docs.Course, "zh")
	if err := errors.Join(err1, err2); err != nil || len(en) != len(zh) || len(en) < 100 {
		t.Fatalf("%d sections in English, %d in Chinese: %v", len(en), len(zh), err)
	}
	number, documents := regexp.MustCompile(`^[\d.]*`), map[string]string{}
	for i := range en {
		if first, known := documents[en[i].Document]; known && first != zh[i].Document {
			t.Errorf("%s is %s, and elsewhere %s", en[i].Document, zh[i].Document, first)
		}
		documents[en[i].Document] = zh[i].Document
		if number.FindString(en[i].Name) != number.FindString(zh[i].Name) || !reflect.DeepEqual(en[i].Commands, zh[i].Commands) {
			t.Errorf("%s: %q\nin Chinese %s: %q", en[i].Name, texts(en[i].Commands), zh[i].Name, texts(zh[i].Commands))
		}
	}
	if len(documents) != 5 {
		t.Errorf("the documents are %v", documents)
	}
}

func texts(commands []course.Command) (all []string) {
	for _, c := range commands {
		all = append(all, c.Text)
	}
	return all
}

func sorted(all []string) []string { slices.Sort(all); return all }

// shape returns the commands and conditions of all questions, in their order.
func shape(l course.Lesson) (all []string) {
	for _, question := range l.Questions() {
		all = append(all, "question")
		all = append(all, texts(question.Commands)...)
		for _, o := range question.Options {
			all = append(all, o.Condition)
		}
	}
	return all
}

// TestWindows reads the lessons and the table of sections with the line ends of Windows.
func TestWindows(t *testing.T) {
	t.Parallel()
	crlf := fstest.MapFS{}
	if err := fs.WalkDir(docs.Course, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(docs.Course, name)
		crlf[name] = &fstest.MapFile{Data: bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, lang := range course.Languages() {
		want, err1 := course.Lessons(docs.Course, lang)
		got, err2 := course.Lessons(crlf, lang)
		if err := errors.Join(err1, err2); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the lessons differ: %v", lang, err)
		}
	}
	want, err1 := sectionsOf(docs.Course, "en")
	got, err2 := sectionsOf(crlf, "en")
	if err := errors.Join(err1, err2); err != nil || len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the sections differ: %v", err)
	}
}

// TestLessons checks that there are thirteen complete lessons. Each has a question before its
// experiments, and an answer that was recorded. All but lesson 0 have a quiz of three items with commands.
func TestLessons(t *testing.T) {
	t.Parallel()
	lessons, err := course.Lessons(docs.Course, "en")
	if err != nil {
		t.Fatal(err)
	}
	quizzes := 0
	for _, l := range lessons {
		tries, notes := 0, 0
		for _, p := range l.Parts {
			switch p.Kind {
			case course.Try:
				tries++
			case course.Quiz:
				quizzes += len(p.Questions)
			case course.Notes:
				notes++
			}
			for _, question := range p.Questions {
				// Beside its question, an experiment may have commands that are only run.
				if p.Kind == course.Plain || p.Kind == course.Try && len(question.Options) == 0 && len(p.Questions) > 1 {
					continue
				}
				if len(question.Options) < 2 || len(question.Commands) == 0 || question.Answer == 0 {
					t.Errorf("%s, %s: %q has %d options, %d commands and the recorded answer %d", l.Name, p.Title, question.Ask, len(question.Options), len(question.Commands), question.Answer)
				}
				if p.Kind == course.Try && (question.Why == "" || question.Seen == "") {
					t.Errorf("%s, %s: %q has no reason or no recorded output", l.Name, p.Title, question.Ask)
				}
			}
		}
		if l.Name != "comparison" && (tries == 0 || notes != 1) {
			t.Errorf("%s: %d experiments, %d parts with notes", l.Name, tries, notes)
		}
	}
	if len(lessons) != 14 || quizzes != 36 {
		t.Errorf("%d lessons with %d quiz items, want 13, the comparison and 36", len(lessons), quizzes)
	}
}
