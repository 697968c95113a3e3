// Package exercise plays small scripted exercises on real servers: sessions, A and B and perhaps more,
// and what each server answers.
//
// An exercise is a text file that reads like the transcript of two terminals:
//
//	en: A comment in English.
//	zh: 同一条注释的中文。
//
//	clean mysql> DROP TABLE IF EXISTS exercise_stock
//	A mysql> UPDATE exercise_stock SET count = 1
//	      -> WHERE id = 1
//	  Query OK, 1 row affected
//	B mysql> UPDATE exercise_stock SET count = 2 WHERE id = 1
//	  (waits)
//	A dies
//	B receives
//	  Query OK, ... affected
//	sleep 3s
//
// The first comment is the title. Statements are for mysql, redis (in the syntax of redis-cli) or zk
// (in that of zkCli). A line with -> continues the statement above. Indented lines are the expected
// reply; without them, any reply but an error is right. In them, ... stands for any text, also over
// several lines. Instead of a reply, or before it, these lines are possible:
//
//	(waits)            the statement gets no reply yet: a line such as "B receives" awaits it
//	(nothing)          after "A receives": no message comes
//	(repeated until)   the statement is sent again until it gets this reply
//
// Statements of clean run before and after the exercise, and are not shown. "A dies" cuts the
// connections of A, as if its process had died.
package exercise

import (
	"embed"
	"fmt"
	"strings"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/suggest"
)

//go:embed *.txt
var files embed.FS

// names returns the names of all exercises, in the order of the course. Each has a file.
func names() []string {
	return []string{
		"isolation", "index", "autocommit", "lock-row", "lock-table",
		"redis-no-expiry", "redis-getset", "redis-multi", "redis-interleaved", "redis-script", "redis-lock-script",
		"redis-reentrant", "redis-hash", "znodes", "zk-queue", "zk-semaphore", "zk-version",
	}
}

// Exercise is one exercise.
type Exercise struct {
	Name  string
	Title api.Text

	clean []step // before and after the exercise
	steps []step
}

// All returns all exercises, in the order of the course.
func All() ([]Exercise, error) {
	all := make([]Exercise, 0, len(names()))
	for _, name := range names() {
		text, err := files.ReadFile(name + ".txt")
		if err != nil {
			return nil, fmt.Errorf("exercise: %w", err)
		}
		e, err := parse(name, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// Find returns the exercise with this name. Its error lists all names.
func Find(name string) (Exercise, error) {
	all, err := All()
	if err != nil {
		return Exercise{}, err
	}
	return suggest.Find("exercise", name, all, func(e Exercise) string { return e.Name })
}

// Needs returns a lab with the servers that the exercise uses, and no others.
func (e Exercise) Needs() (cfg rig.Config) {
	for _, s := range e.steps {
		switch s.server {
		case mysqlServer:
			cfg.MySQL = true
		case redisServer:
			cfg.Redis = 1
		case zkServer:
			cfg.Zookeeper = 1
		}
	}
	return cfg
}

// Move is what happens in an exercise: a statement of a session with the reply that it must get, or words.
type Move struct {
	Session string   // empty for words that belong to no session
	Server  string   // of a statement: mysql, redis or zk
	Words   api.Text // a statement is the same in both languages
	Reply   string   // empty if any reply is right
}

// Moves returns what happens, in its order.
func (e Exercise) Moves() (all []Move) {
	for _, s := range e.steps {
		m := Move{Session: s.session, Server: s.server, Words: api.Text{EN: s.text, ZH: s.text}, Reply: strings.Join(s.want, "  ")}
		switch s.kind {
		case blank:
			continue
		case comment:
			m.Words = s.comment
		case receives:
			m.Words = api.Text{EN: "receives", ZH: "收到"}
		case dies:
			m.Words = api.Text{EN: "dies: its connection breaks", ZH: "崩溃：连接断开"}
		case sleep:
			m.Words = api.Textf("%s pass", "过了 %s", s.text)
		}
		if s.mode == waits || s.mode == nothing {
			m.Reply = map[mode]string{waits: "…", nothing: "–"}[s.mode]
		}
		all = append(all, m)
	}
	return all
}
