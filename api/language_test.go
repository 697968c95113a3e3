package api_test

import (
	"testing"

	"oversell/api"
)

func TestLanguage(t *testing.T) {
	for accept, want := range map[string]string{
		"": "en", "*": "en", "fr": "en", "en-US,en;q=0.9": "en", "not a language;;": "en",
		"zh": "zh", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "zh-TW": "zh", "fr, zh;q=0.5": "zh",
		"en, zh;q=0.9": "en", "en;q=0.5, zh-CN": "zh", "zh;q=0, en": "en",
	} {
		if got := api.Language(accept); got != want {
			t.Errorf("Accept-Language: %s: %s, want %s", accept, got, want)
		}
	}
}

// TestLanguageIsCheap holds that a matcher is not made again for each request: that takes hundreds of allocations, and
// was half of a replica's time.
func TestLanguageIsCheap(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { api.Language("de, zh;q=0.5") }); n > 50 {
		t.Errorf("%.0f allocations for one request", n)
	}
}
