package dash

import (
	"net/http"

	"oversell/api"
)

func bilingual(en, zh string) api.Text { return api.Text{EN: en, ZH: zh} }

// failure returns the text of an error, which is in English.
func failure(err error) api.Text { return bilingual(err.Error(), "出错："+err.Error()) }

const langCookie = "lang"

func language(r *http.Request) string {
	if c, err := r.Cookie(langCookie); err == nil && (c.Value == "en" || c.Value == "zh") {
		return c.Value
	}
	return api.Language(r.Header.Get("Accept-Language"))
}
