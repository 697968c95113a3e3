package dash

import (
	"bytes"
	"fmt"
	"html/template"

	"oversell/docs"
	"oversell/lab/course"
)

// LessonPages returns the pages of the course, with the recorded results.
func LessonPages() ([]SitePage, error) {
	t := template.Must(template.New("lesson").Funcs(template.FuncMap{
		"markdown": func(text string) (template.HTML, error) { return course.HTML(text, lessonFile) },
		"inline":   inline,
	}).ParseFS(siteFiles, "site/lesson.html.tmpl"))
	list := SitePage{Path: "course/index.html", Title: Text{"The course", "课程"}}
	pages := []SitePage{list}
	for _, lang := range course.Languages() {
		lessons, err := course.Lessons(docs.Course, lang)
		if err != nil {
			return nil, err
		}
		for i, l := range lessons {
			if len(pages) <= i+1 {
				pages = append(pages, SitePage{Path: "course/" + lessonFile(l.Name)})
			}
			err = pages[i+1].set(t, "lesson", lang, l.Title, struct {
				course.Lesson
				Chinese bool
			}{l, lang == "zh"})
			if err != nil {
				return nil, fmt.Errorf("write the site: %s: %w", l.Name, err)
			}
		}
		err = pages[0].set(t, "lessons", lang, list.Title.In(lang), struct {
			Lessons []course.Lesson
			Chinese bool
		}{lessons, lang == "zh"})
		if err != nil {
			return nil, fmt.Errorf("write the site: %w", err)
		}
	}
	return pages, nil
}

func lessonFile(lesson string) string { return lesson + ".html" }

// set renders the content of the page in one language.
func (p *SitePage) set(t *template.Template, name, lang, title string, data any) error {
	var text bytes.Buffer
	if err := t.ExecuteTemplate(&text, name, data); err != nil {
		return err
	}
	content := template.HTML(text.String()) //nolint:gosec // rendered by our own template
	if lang == "zh" {
		p.Title.ZH, p.ZH = title, content
	} else {
		p.Title.EN, p.EN = title, content
	}
	return nil
}
