package api

import "golang.org/x/text/language"

// matcher is made once: making it takes longer than all else that a replica does for a sale.
var matcher = language.NewMatcher([]language.Tag{language.English, language.Chinese}) //nolint:gochecknoglobals // a constant

// Language returns the language, en or zh, that the header Accept-Language prefers. It returns en
// if the header names neither.
func Language(accept string) string {
	_, i := language.MatchStrings(matcher, accept)
	return []string{"en", "zh"}[i]
}
