package dash

import (
	"net/http"

	"oversell/api"
)

// Text is a text of a page in English and in Chinese.
type Text api.Text

// In returns the text in the language lang, en or zh.
func (t Text) In(lang string) string { return api.Text(t).In(lang) }

func textf(en, zh string, values ...any) Text { return Text(api.Textf(en, zh, values...)) }

// failure returns the text of an error, which is in English.
func failure(err error) Text { return Text{err.Error(), "出错：" + err.Error()} }

func verbatim(s string) Text { return Text{s, s} }

const langCookie = "lang"

func language(r *http.Request) string {
	if c, err := r.Cookie(langCookie); err == nil && (c.Value == "en" || c.Value == "zh") {
		return c.Value
	}
	return api.Language(r.Header.Get("Accept-Language"))
}
