package dash

import (
	"net/http"
	"strings"

	"oversell/api"
)

// Text is one text of the page's own in both languages.
type Text api.Text

// In returns the text in a language, en or zh.
func (t Text) In(lang string) string { return api.Text(t).In(lang) }

const langCookie = "lang"

// language is what the page was switched to, or else what the browser prefers.
func language(r *http.Request) string {
	if c, err := r.Cookie(langCookie); err == nil && (c.Value == "en" || c.Value == "zh") {
		return c.Value
	}
	for _, wish := range strings.Split(r.Header.Get("Accept-Language"), ",") {
		switch wish = strings.ToLower(strings.TrimSpace(wish)); {
		case strings.HasPrefix(wish, "zh"):
			return "zh"
		case strings.HasPrefix(wish, "en"):
			return "en"
		}
	}
	return "en"
}
