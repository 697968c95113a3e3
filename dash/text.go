package dash

import (
	"net/http"
	"strings"
)

// Text is said in both languages of the class.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// In is the text in a language, en or zh.
func (t Text) In(lang string) string {
	if lang == "zh" && t.ZH != "" {
		return t.ZH
	}
	return t.EN
}

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
