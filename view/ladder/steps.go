package ladder

import (
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/lab/stepper"
)

// detailLetters is the length to which a command of a client is cut: that of A may cross the column of B,
// but that of B not the name of a holder. The page shows all of it beside the picture.
var detailLetters = [2]int{44, 26} //nolint:gochecknoglobals // never written

// round places the entries of a log. Columns 0 and 1 are the clients.
type round struct {
	lang
	Ladder
	lock, stock, row int
	open             map[int]int // the index of the band of a client that waits or holds the lock
}

// OfSteps returns the picture of a round in which two clients take their steps in turn, in a language: en or zh. Its
// times are the numbers of the moves. locked means that the strategy has a lock.
func OfSteps(log []stepper.Entry, locked bool, language string) Ladder {
	r := round{lang: lang(language), lock: -1, stock: 2, row: stepper.Pieces, open: map[int]int{}}
	r.Title = r.say("The messages of A and B", "A 和 B 的消息")
	r.Columns = []Column{{Name: "A", Note: "replica-1", Client: true}, {Name: "B", Note: "replica-2", Client: true}}
	if locked {
		r.lock, r.stock = 2, 3
		r.Columns = append(r.Columns, Column{Name: r.word("lock")})
	}
	r.Columns = append(r.Columns, Column{Name: r.word("stock"), Note: strconv.Itoa(stepper.Pieces)})
	for i, e := range log {
		r.add(e)
		if i > 0 && e.Move == log[i-1].Move {
			r.Rungs[len(r.Rungs)-1].At = ""
		}
	}
	for i := range r.Bands {
		if r.Bands[i].To < 0 {
			r.Bands[i].To = len(r.Rungs)
		}
	}
	return r.Ladder
}

func (r *round) add(e stepper.Entry) {
	client := int(e.Client)
	rung := Rung{At: strconv.Itoa(e.Move), Column: client, Words: e.Text.In(string(r.lang)), Detail: shortened(e.Commands, detailLetters[e.Client])}
	rung.From, rung.To = r.message(client, e)
	if e.State() == stepper.Ended {
		rung.Kind = Answer
	}
	written, isWrite := strings.CutPrefix(e.Text.EN, "has written ")
	switch {
	case isWrite && written == strconv.Itoa(r.row) && e.Row == r.row:
		rung.Stock, rung.Lost = written, true
		rung.Words += r.say(" over %s ✗", "，覆盖了 %s ✗", written)
	case e.Row != r.row:
		rung.Stock = strconv.Itoa(e.Row)
	}
	r.row = e.Row
	r.Rungs = append(r.Rungs, rung)
	r.addBands(client, e)
}

// message returns the columns of the message that led to an entry.
func (r *round) message(client int, e stepper.Entry) (from, to int) {
	from, to = client, client
	switch {
	case e.Step == api.Read:
		from = r.stock
	case e.Step == api.Written:
		to = r.stock
	case r.lock < 0:
	case e.Step == api.Granted:
		from = r.lock
	case e.Step == api.Queued, e.Step == api.Released, e.State() == stepper.Waiting:
		to = r.lock
	}
	return from, to
}

// addBands begins and ends the waits and holds of a client.
func (r *round) addBands(client int, e stepper.Entry) {
	at := len(r.Rungs) - 1
	if b, open := r.open[client]; open && (e.Step != "" || e.State() == stepper.Ended) {
		if r.Bands[b].Shape == Waits || e.Step == api.Released || e.State() == stepper.Ended {
			r.end(client, at)
		}
	}
	_, open := r.open[client]
	switch {
	case open:
	case e.State() == stepper.Waiting, e.Step == api.Queued:
		r.begin(client, Band{Column: client, From: at, Shape: Waits})
	case e.Step == api.Granted:
		r.begin(client, Band{Column: client, From: at, Shape: Holds})
		if b, two := r.open[1-client]; two && r.Bands[b].Shape == Holds {
			r.Rungs = append(r.Rungs, Rung{Kind: Alarm, Words: r.say("✗ A and B both believe that they hold the lock", "✗ A 和 B 都以为自己持锁")})
		}
	}
}

func (r *round) begin(client int, b Band) {
	r.open[client] = len(r.Bands)
	b.To = -1
	r.Bands = append(r.Bands, b)
	if b.Shape == Holds && r.lock >= 0 {
		b.Column, b.Name = r.lock, r.Columns[client].Name
		if _, two := r.open[1-client]; two {
			b.Shift = 22 * client
		}
		r.Bands = append(r.Bands, b)
	}
}

func (r *round) end(client, at int) {
	b := r.open[client]
	r.Bands[b].To = at
	if r.Bands[b].Shape == Holds && r.lock >= 0 {
		r.Bands[b+1].To = at
	}
	delete(r.open, client)
}

// shortened returns the commands on one line with at most that many letters.
func shortened(commands []string, letters int) string {
	line := []rune(strings.Join(commands, "; "))
	if len(line) <= letters {
		return string(line)
	}
	return string(slices.Concat(line[:letters-1], []rune("…")))
}
