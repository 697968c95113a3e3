package api

import "golang.org/x/text/language"

// Language returns the language, en or zh, that the header Accept-Language prefers. It returns en
// if the header names neither.
func Language(accept string) string {
	offered := []language.Tag{language.English, language.Chinese}
	_, i := language.MatchStrings(language.NewMatcher(offered), accept)
	return offered[i].String()
}
