package dash

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strconv"

	"rsc.io/qr"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/view/frame"
)

// votes lets the class vote on the open question, from phones and without the token.
type votes struct {
	s *Server
	// The hub's mutex protects the fields below: see hub.Send.
	open   question
	by     map[string]int   // the chosen option, from 1, by voter
	scores map[string]score // of all questions with a result, by voter

	picture template.URL // the link for phones as a QR code; empty if the lab is not shared
}

type question struct {
	ID       string // differs for each question, so that a late vote does not count for the next one
	Topic    string // of the lesson's page, which shows the votes
	Question int    // the index of the question in the lesson
	Closed   bool   // the question has a result
	Right    int    // the right option, from 1, once the question is closed; 0 without one
	Ask      api.Text
	Options  []api.Text
}

// score counts the questions in which a phone has voted, and those in which it was right.
type score struct {
	Right int `json:"right"`
	Of    int `json:"of"`
}

const (
	voterCookie = "voter"
	maxVoters   = 10_000 // in one question
)

func newVotes(s *Server) *votes {
	v := &votes{s: s, by: map[string]int{}, scores: map[string]score{}, picture: picture(s.Share)}
	s.hub.Open("vote", v.all)
	s.routes.HandleFunc("GET /dash/vote", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie(voterCookie); err != nil {
			http.SetCookie(w, &http.Cookie{Name: voterCookie, Value: rand.Text(), Path: "/dash/vote", MaxAge: 24 * 3600, SameSite: http.SameSiteLaxMode, HttpOnly: true}) //nolint:gosec // it only counts a phone once, and the lab uses HTTP
		}
		s.write(w, http.StatusOK, "vote", view{Words: frame.Words{Lang: language(r)}, Page: "vote", Title: bilingual("Vote", "投票")})
	})
	s.routes.HandleFunc("POST /dash/vote", s.answered(v.vote))
	s.routes.HandleFunc("GET /dash/vote/mine", v.mine)
	return v
}

// all returns the messages that draw the page of a phone. The hub's mutex must be locked.
func (v *votes) all() []hub.Message {
	return []hub.Message{v.s.part("vote", "question", struct {
		question
		Class classVotes
	}{v.open, v.count(v.open.Topic)})}
}

// mine sends a phone its own choice in the open question, and its score, which no other phone may see.
func (v *votes) mine(w http.ResponseWriter, r *http.Request) {
	own := struct {
		Choice int   `json:"choice"` // from 1; 0 means none
		Score  score `json:"score"`
	}{}
	if voter, err := r.Cookie(voterCookie); err == nil {
		v.s.hub.Do(func() { own.Choice, own.Score = v.by[voter.Value], v.scores[voter.Value] })
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(own) // the phone may be gone
}

// ask opens a question in place of the one before.
func (v *votes) ask(q question) {
	q.ID = rand.Text()
	var before question
	v.s.hub.Send("vote", func() []hub.Message {
		before, v.open, v.by = v.open, q, map[string]int{}
		return v.all()
	})
	if before.Topic != q.Topic && before.Topic != "" {
		v.show(before.Topic)
	}
	v.show(q.Topic)
}

// reveal ends the vote on a question, because its result shows, and returns the votes.
func (v *votes) reveal(topic string, question, right int) (class classVotes) {
	v.s.hub.Send("vote", func() []hub.Message {
		if v.open.Topic != topic || v.open.Question != question {
			return nil
		}
		if !v.open.Closed {
			for voter, option := range v.by {
				s := v.scores[voter]
				s.Of++
				if option == right {
					s.Right++
				}
				v.scores[voter] = s
			}
		}
		v.open.Closed, v.open.Right = true, right
		class = v.count(topic)
		return v.all()
	})
	v.show(topic)
	return class
}

// show shows the votes on the page of the lesson that asks, or that asked before.
func (v *votes) show(topic string) {
	v.s.hub.Send(topic, func() []hub.Message { return []hub.Message{v.s.part("lesson", "tally", v.count(topic))} })
}

func (v *votes) vote(_ context.Context, req *http.Request) error {
	voter, err := req.Cookie(voterCookie)
	if err != nil {
		return badRequest("Open the page Vote first, and allow cookies: each phone votes once.", "请先打开投票页并允许 Cookie：每部手机投一票。")
	}
	var topic string
	v.s.hub.Do(func() {
		topic = v.open.Topic
		option, errOption := strconv.Atoi(req.Form.Get("option"))
		_, known := v.by[voter.Value]
		switch {
		case req.Form.Get("question") != v.open.ID || len(v.open.Options) == 0 || v.open.Closed:
			err = reject(http.StatusConflict, "This question is closed.", "这个问题已经结束。")
		case errOption != nil || option < 1 || option > len(v.open.Options):
			err = badRequest("option must be 1 to %d.", "option 必须是 1 到 %d。", len(v.open.Options))
		case !known && len(v.by) >= maxVoters:
			err = reject(http.StatusTooManyRequests, "Too many phones vote.", "投票的手机太多。")
		default:
			v.by[voter.Value] = option
		}
	})
	if err == nil {
		v.show(topic)
	}
	return err
}

// classVotes has the number of votes for each option of the open question. Before the result, a page may show
// their sum only: bars would steer the votes.
type classVotes struct {
	Options []counted
	Voters  int
	Closed  bool
	Right   int          // see question
	Link    string       // of the page for phones; empty if the lab is not shared
	Picture template.URL // the link as a QR code
}

type counted struct {
	api.Text
	Votes, Share int // the share in per cent
}

// Agreed returns the number of phones that said what happened.
func (t classVotes) Agreed() int {
	if t.Right == 0 {
		return 0
	}
	return t.Options[t.Right-1].Votes
}

// count counts the votes on the open question, if the page with this topic asks it. The hub's mutex
// must be locked.
func (v *votes) count(topic string) classVotes {
	if v.open.Topic != topic {
		return classVotes{}
	}
	t := classVotes{Voters: len(v.by), Closed: v.open.Closed, Right: v.open.Right, Link: v.s.Share, Picture: v.picture}
	for _, option := range v.open.Options {
		t.Options = append(t.Options, counted{Text: option})
	}
	for _, chosen := range v.by {
		t.Options[chosen-1].Votes++
	}
	for i := range t.Options {
		t.Options[i].Share = 100 * t.Options[i].Votes / max(1, len(v.by))
	}
	return t
}

// picture returns a link as a QR code. It is empty for an empty link.
func picture(link string) template.URL {
	if link == "" {
		return ""
	}
	code, err := qr.Encode(link, qr.M)
	if err != nil {
		return "" // the page shows the link as well
	}
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(code.PNG())) //nolint:gosec // our own picture
}

// Viewers returns a handler for the phones of a class: it shows all pages, and accepts only votes.
func (s *Server) Viewers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := []string{http.MethodGet, http.MethodHead}
		if !slices.Contains(reads, r.Method) && r.URL.Path != "/dash/vote" && r.URL.Path != "/dash/language" {
			s.refuse(w, reject(http.StatusForbidden, "Phones can look and vote only.", "手机只能查看和投票。"))
			return
		}
		s.ServeHTTP(w, r)
	})
}
