package stepper

import (
	"fmt"
	"strings"

	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/replica"
)

// explain says in a few words what a client has done when it is at the step. read is the
// count that it has read.
func explain(at replica.Stopped, read int) string {
	switch at.Step {
	case "asked":
		return "wants the lock"
	case "queued":
		return "has a place in the queue"
	case "granted":
		if at.Fence > 0 {
			return fmt.Sprintf("has the lock, fence %d", at.Fence)
		}
		return "has the lock"
	case "read":
		return fmt.Sprintf("has read %d", read)
	case "writing":
		return fmt.Sprintf("will write %d next", read-1)
	case "written":
		return fmt.Sprintf("has written %d", read-1)
	case "released":
		return "has given the lock back"
	case "after-setnx":
		return "has the key, which has no expiry yet"
	case "taken":
		return "has sold it, and the row does not know yet"
	case "compared":
		return "has seen that the key is its own, deletes it next"
	case "unlocked":
		return "has not committed yet"
	default:
		return "is at this step"
	}
}

// frees says whether somebody who waits for the lock may have it once a rival has come
// to the step.
func frees(step string) bool { return step == "released" || step == "unlocked" }

// waits is said of a client that neither comes to a step nor gets an answer.
const waits = "waits for the lock"

// told is what the service has answered a client.
func told(op history.Op) string {
	if op.Outcome == history.OK && !op.HasRemaining {
		return "is told: sold"
	}
	if op.Outcome == history.OK {
		return fmt.Sprintf("is told: sold, %d left", op.Remaining)
	}
	return "is told: " + strings.TrimSuffix(op.Reason+": "+op.Detail, ": ")
}

// sentence says how a round ended.
func sentence(stock check.I1) string {
	facts := fmt.Sprintf("%d sold, %d left of %d: ", stock.Sold, stock.Remaining, stock.Initial)
	switch lost := stock.Lost(); {
	case lost == 1:
		return facts + "an update was lost."
	case lost > 1:
		return facts + fmt.Sprintf("%d updates were lost.", lost)
	case stock.Verdict == check.Holds:
		return facts + "no update was lost."
	case stock.Verdict == check.Violated:
		return facts + "pieces have left the row that nobody bought."
	default:
		return facts + "whether an update was lost, nobody can say."
	}
}
