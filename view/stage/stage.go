// Package stage draws the system that a sale passes: the clients, nginx, the replicas, the lock with its
// holder and its queue, and the row with its number. A picture shows one moment.
package stage

import (
	"embed"
	"html/template"
	"slices"
	"strings"

	"oversell/api"
	"oversell/view/frame"
)

//go:embed stage.svg.tmpl
var files embed.FS

var picture = template.Must(template.ParseFS(files, "stage.svg.tmpl")) //nolint:gochecknoglobals // parsed once, never written

// Place says where a strategy keeps other sales out.
type Place string

// The places. A server, such as Redis, is a place with the server's name.
const (
	Nowhere    Place = ""
	EachServer Place = "replica" // a lock in the memory of each replica, so each replica has its own
	TheRow     Place = "row"     // the row itself: its row lock, or a condition of the UPDATE
)

// PlaceOf returns the place of a strategy's lock.
func PlaceOf(c api.Card) Place {
	names := map[string]Place{"mysql": "MySQL", "redis": "Redis", "redlock": "5 × Redis", "zookeeper": "ZooKeeper", "etcd": "etcd"}
	switch {
	case c.Locker && c.Scope == api.ScopeProcess:
		return EachServer
	case c.Locker:
		return names[c.Backends[len(c.Backends)-1]]
	case c.Scope == api.ScopeShared:
		return TheRow
	}
	return Nowhere
}

// State is what a client or a replica does.
type State string

// The states.
const (
	Idle    State = ""
	Waiting State = "waiting"
	Holding State = "holding"
	Frozen  State = "frozen"
	Dead    State = "dead"
)

// Box is a client or a replica. Its note is what it knows or does, such as "A read 10".
type Box struct {
	Name  string
	Note  api.Text
	State State
}

// Stage is one moment of the system.
type Stage struct {
	Lock     Place
	Clients  []Box
	Replicas []Box
	Holder   string   // the box that has the lock, or empty
	Queue    []string // the boxes that wait for it, the next one first
	Row      string   // the number in the row, or what takes its place
	Of       string   // the number at the start; may be empty
	Server   string   // the server that keeps the stock; empty means MySQL
	Alarm    api.Text // what went wrong, in red
}

// SVG returns the picture in a language, en or zh. The id must be unique in its page.
func (s Stage) SVG(id, lang string) template.HTML {
	return frame.Inline(picture, drawing{s, frame.Words{Lang: lang}, id})
}

// Sentence says what the picture shows.
func (s Stage) Sentence() api.Text {
	all := []api.Text{s.where()}
	for _, b := range slices.Concat(s.Clients, s.Replicas) {
		if words := b.words(); words.EN != "" {
			all = append(all, api.Text{EN: b.Name + ": " + words.EN + ".", ZH: b.Name + "：" + words.ZH + "。"})
		}
	}
	if s.Holder != "" {
		all = append(all, api.Textf("%s holds the lock.", "%s 持有锁。", s.Holder))
	}
	if len(s.Queue) > 0 {
		all = append(all, api.Textf("Waiting: %s.", "等待：%s。", strings.Join(s.Queue, ", ")))
	}
	all = append(all, api.Textf("The row: %s.", "数据行：%s。", s.Row), s.Alarm)
	return api.Joined(all...)
}

func (s Stage) where() api.Text {
	switch s.Lock {
	case Nowhere:
		return api.Text{EN: "There is no lock.", ZH: "没有锁。"}
	case EachServer:
		return api.Text{EN: "Each replica has a lock of its own.", ZH: "每个副本各有一把锁。"}
	case TheRow:
		return api.Text{EN: "The row itself keeps other sales out.", ZH: "由数据行本身排斥其他销售。"}
	}
	return api.Textf("The lock is in %s.", "锁在 %s 里。", string(s.Lock))
}

func (b Box) words() api.Text {
	state := map[State]api.Text{
		Waiting: {EN: "waiting", ZH: "等待中"}, Holding: {EN: "holding the lock", ZH: "持有锁"},
		Frozen: {EN: "frozen", ZH: "已冻结"}, Dead: {EN: "dead", ZH: "已终止"},
	}[b.State]
	if b.Note.EN == "" {
		return state
	}
	if state.EN == "" {
		return b.Note
	}
	return api.Text{EN: state.EN + ", " + b.Note.EN, ZH: state.ZH + "，" + b.Note.ZH}
}
