package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"oversell/view/report"
)

func TestWriteLines(t *testing.T) {
	t.Parallel()
	text := `{"a":"x, {[<\"","list":[1,2],"rows":[{"id":1,"why":{"en":"\\"}},{"id":2,"seeds":[1,2]}],"none":[],"null":null}`
	want := `{
 "a":"x, {[<\"",
 "list":[1,2],
 "rows":[
  {"id":1,"why":{"en":"\\"}},
  {"id":2,"seeds":[1,2]}
 ],
 "none":[],
 "null":null
}
`
	var got bytes.Buffer
	if err := report.WriteLines(&got, json.RawMessage(text)); err != nil || got.String() != want {
		t.Errorf("%v, %s, want %s", err, got.String(), want)
	}
}
