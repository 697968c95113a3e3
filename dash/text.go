package dash

import (
	"errors"
	"net/http"

	"oversell/api"
	"oversell/lab/course"
)

func bilingual(en, zh string) api.Text { return api.Text{EN: en, ZH: zh} }

// failure returns the text of an error, which is in English.
func failure(err error) api.Text {
	if open := (course.Inconclusive{}); errors.As(err, &open) {
		return open.Text
	}
	return bilingual(err.Error(), "出错："+err.Error())
}

const langCookie = "lang"

func language(r *http.Request) string {
	if c, err := r.Cookie(langCookie); err == nil && (c.Value == "en" || c.Value == "zh") {
		return c.Value
	}
	return api.Language(r.Header.Get("Accept-Language"))
}
