package dash

import (
	"testing"

	"oversell/view/stage"
)

// TestAnsweredKeepsReplicas checks that the picture has each replica, also before its first answer.
func TestAnsweredKeepsReplicas(t *testing.T) {
	drawn := []stage.Box{{Name: "replica-1"}, {Name: "replica-2"}, {Name: "replica-3"}}
	for _, answers := range []map[string]int{nil, {"replica-2": 7}, {"replica-3": 0, "replica-1": 5}} {
		all := answered(drawn, answers)
		for i, b := range all {
			if b.Name != drawn[i].Name || (answers[b.Name] > 0) != (b.Note.EN != "") {
				t.Errorf("%v: %+v", answers, all)
			}
		}
		if len(all) != 3 {
			t.Errorf("%v: %+v", answers, all)
		}
	}
	if all := answered(drawn, map[string]int{"pod-a": 1, "pod-b": 1, "pod-c": 1}); len(all) != 3 || all[0].Name != "pod-a" {
		t.Errorf("%+v", all)
	}
}
