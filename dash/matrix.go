package dash

import (
	"slices"

	"oversell/lab/experiment"
)

// matrix is what the page shows of all squares: strategies down, hazards across.
type matrix struct {
	Hazards []hazard
	Rows    []strip
	Tally   tally
}

// tally counts the squares that were run.
type tally struct{ Agree, Contradict, Silent int }

// strip is a strategy's row, with or without its fence.
type strip struct {
	Strategy string
	Fenced   bool
	Places   []place
}

// place is a square with all that is known of it.
type place struct {
	square
	Able    bool // to run it
	ByHand  bool // it can be run at least when it is named
	Strikes bool // the hazard can strike it
	Claim   experiment.Claim
	Running bool
	Run     *broken // nil: not run yet
}

// squares are all that there is an experiment for.
func squares(cards []experiment.Card) (all []square) {
	for _, c := range cards {
		for _, e := range experiment.All() {
			if !e.Strikes(c) {
				continue
			}
			all = append(all, square{e.Hazard, c.ID, false})
			if c.Fenced {
				all = append(all, square{e.Hazard, c.ID, true})
			}
		}
	}
	return all
}

// matrix is called in the hub's turn.
func (b *breaks) matrix() matrix {
	m := matrix{Hazards: hazards(), Tally: b.tally()}
	for _, card := range b.cards {
		m.Rows = append(m.Rows, b.strip(card, false))
		if card.Fenced {
			m.Rows = append(m.Rows, b.strip(card, true))
		}
	}
	return m
}

// tally is called in the hub's turn.
func (b *breaks) tally() (t tally) {
	for _, run := range b.runs {
		switch run.Against() {
		case "agrees":
			t.Agree++
		case "contradicts":
			t.Contradict++
		default:
			t.Silent++
		}
	}
	return t
}

// column draws the squares of the hazards that are in what runs, or ran last. It is called
// in the hub's turn.
func (b *breaks) column(hazards ...string) []part {
	squares := []part{}
	for _, e := range experiment.All() {
		if !slices.Contains(hazards, e.Hazard) {
			continue
		}
		for _, card := range b.cards {
			for _, fenced := range []bool{false, true} {
				if p := b.place(card, e, fenced); p.Strikes && b.now.strikes(p.square) {
					squares = append(squares, b.s.draw("break", "square", p.ID(), p))
				}
			}
		}
	}
	return squares
}

func (b *breaks) strip(card experiment.Card, fenced bool) strip {
	s := strip{Strategy: card.ID, Fenced: fenced}
	for _, e := range experiment.All() {
		s.Places = append(s.Places, b.place(card, e, fenced))
	}
	return s
}

// place is called in the hub's turn.
func (b *breaks) place(card experiment.Card, e experiment.Experiment, fenced bool) place {
	q := square{e.Hazard, card.ID, fenced}
	p := place{square: q, Able: b.able(), ByHand: e.Strikes(card), Claim: e.Claim(card, fenced), Run: b.runs[q]}
	p.Strikes = e.Strikes(card) && (!fenced || card.Fenced && e.Fenced) || p.Run != nil
	p.Running = b.now.Running && b.now.Hazard == e.Hazard && p.Strikes && b.now.strikes(q)
	return p
}

// Class marks a verdict for the eye, and Sign is for who sees no colours.
func (b *broken) Class() string {
	switch {
	case b.Verdict == experiment.Violated || b.Verdict == experiment.Stalled:
		return "broke"
	case b.Verdict.Broke():
		return "cost"
	case b.Verdict == experiment.Safe:
		return "safe"
	default:
		return "doubt"
	}
}

// Sign is ✗ for harm, ▲ for a cost, ✓ for none.
func (b *broken) Sign() string {
	return map[string]string{"broke": "✗", "cost": "▲", "safe": "✓", "doubt": "?"}[b.Class()]
}

// Word is the verdict in a word.
func (b *broken) Word() Text {
	return map[experiment.Verdict]Text{
		experiment.Safe: {"safe", "安全"}, experiment.Violated: {"broken", "被破坏"}, experiment.Stalled: {"stalled", "停滞"},
		experiment.Aborted: {"aborted", "中断"}, experiment.Wasteful: {"wasteful", "浪费"},
		experiment.NotShown: {"not shown", "未显现"}, experiment.Unknown: {"unknown", "未知"},
	}[b.Verdict]
}

// Against says how the run and the card stand to each other: agrees, contradicts, or
// nothing where one of them is silent.
func (b *broken) Against() string {
	switch {
	case b.Claim == experiment.Silent || b.Verdict == experiment.Unknown:
		return ""
	case b.Agrees():
		return "agrees"
	default:
		return "contradicts"
	}
}

// Sentence is the verdict in a sentence.
func (b *broken) Sentence() Text {
	name := square{b.Hazard, b.Strategy, b.Fenced}.Name()
	words := map[experiment.Verdict]Text{
		experiment.Safe:     {name + " stood: every invariant held.", name + " 站住了：所有不变量都成立。"},
		experiment.Violated: {name + " broke: " + invariant(b.Invariant).EN + ".", name + " 被破坏：" + invariant(b.Invariant).ZH + "。"},
		experiment.Stalled:  {name + " stalled: nobody got the lock within the bound.", name + " 停滞：在限定时间内没有人拿到锁。"},
		experiment.Aborted:  {name + " aborted: the lock ended under the work, and only the work was lost.", name + " 中断：工作还没完，锁已失去；只损失了这次工作。"},
		experiment.Wasteful: {name + " was correct, at a cost that grows with the crowd.", name + " 正确，但代价随人数增长。"},
		experiment.NotShown: {"The flaw of " + name + " did not show.", name + " 的缺陷没有显现。"},
		experiment.Unknown:  {"This run says nothing of " + name + ".", "这次运行不能说明 " + name + "。"},
	}[b.Verdict]
	more := map[string]Text{
		"agrees": {" So its card claims.", "与它的卡片一致。"}, "contradicts": {" Its card claims otherwise.", "它的卡片说的不是这样。"},
	}[b.Against()]
	if b.Claim == experiment.Silent {
		more = Text{" Its card is silent about this hazard.", "它的卡片没有提到这个危险。"}
	}
	return Text{words.EN + more.EN, words.ZH + more.ZH}
}

// invariant says what does not hold.
func invariant(name string) Text {
	if words, ok := map[string]Text{
		"I1":              {"what was sold is not what left the shelf (I1)", "卖出的数量与货架上减少的数量不符（I1）"},
		"I2":              {"two held the lock at the same time (I2)", "两个人同时持有锁（I2）"},
		"I3":              {"an older fence wrote after a newer one (I3)", "旧的栅栏令牌在新的之后写入（I3）"},
		"I4":              {"nobody got the lock in time (I4)", "没有人及时拿到锁（I4）"},
		"I5":              {"the stock kept elsewhere does not agree with the row (I5)", "别处保存的库存与数据行不符（I5）"},
		"linearizability": {"no order of the sales explains the answers", "没有一种销售顺序能解释这些应答"},
	}[name]; ok {
		return words
	}
	return Text{"an invariant does not hold", "有不变量不成立"}
}
