package chaos

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/lab/suggest"
)

// Verb says what a move does.
type Verb string

// These are the moves of a client's request. A request that stops goes on with Resumes only.
const (
	Sells   Verb = "sells"   // a sale begins, and stops at the step At if it reaches it
	Resumes Verb = "resumes" // the stopped request goes on, and may stop again, at At
	Ends    Verb = "ends"    // the request gets its answer, or stops: the next move waits for that
	Stops   Verb = "stops"   // as Ends, for a request that is to stop at a step
	Reads   Verb = "reads"   // the client asks for more pieces than there are
	Cancels Verb = "cancels" // the client closes its connection
	Each    Verb = "each"    // the first move: the plan is carried out for each command n of the lock, from Nth on, until it sends no more
	Passes  Verb = "passes"  // time passes: more than a lease, or For
	Locks   Verb = "locks"   // in place of Sells, for a lock that is locked and unlocked by hand
	Unlocks Verb = "unlocks" // the client unlocks what it locked last, even if it no longer holds that
	Awaits  Verb = "awaits"  // in place of Locks, for a latch: it sets the latch if it is open, and waits until it opens
	Counts  Verb = "counts"  // the client counts the latch down by one
)

// These moves inject a fault. Heals ends a fault that does not end by itself.
const (
	Freezes    Verb = "freezes"    // the process of the client's replica is stopped
	Starves    Verb = "starves"    // the process gets no processor for half a lease
	Dies       Verb = "dies"       // the process is killed
	Cut        Verb = "cut"        // the client is cut off from the servers of the lock
	Slow       Verb = "slow"       // the answers of the servers of the lock to the client take longer: half a second, or For
	Holds      Verb = "holds"      // the Nth command from now on, from the client to each server of the lock, is held back
	HoldsRow   Verb = "holds-row"  // the Nth command from now on, from the client to the database, is held back
	Loses      Verb = "loses"      // the answer to the Nth command is lost
	Disconnect Verb = "disconnect" // the connections of the client to the servers of the lock end
	Deletes    Verb = "deletes"    // an operator deletes the locks
	Crashes    Verb = "crashes"    // the Nth server of the lock is killed, and started again
	Restarts   Verb = "restarts"   // the Nth server of the lock is restarted
	Stalls     Verb = "stalls"     // the Nth server of the lock answers nothing for half a lease, as with a slow disk
	Jumps      Verb = "jumps"      // the clock of the Nth server jumps ahead by an hour
	FailsOver  Verb = "fails-over" // a replica of Redis takes over, without what was written since the plan began
	// Only written plans have the following moves.
	LosesPower   Verb = "loses-power"   // the client's machine dies: all its links are silent, and its process is killed
	Boots        Verb = "is-restarted"  // the client's process is killed, and started again
	Refused      Verb = "refused"       // servers of the lock reset the client's connections, old and new
	LosesRenewal Verb = "loses-renewal" // the answer to its next renewal is lost
	LosesSession Verb = "loses-session" // its place in the queue, with its session or its lease, ends
	Renews       Verb = "renews"        // no fault: the next move waits until the lock of a program on trial has just been renewed
	RunsAhead    Verb = "runs-ahead"    // its program starts again, with a clock that is ten seconds ahead
	Lags         Verb = "lags"          // the replica of Redis, or of the database, gets no more writes
	StaysBehind  Verb = "stays-behind"  // Sentinel promotes a replica of Redis, and the client stays with the old master, which goes on
	QuorumDies   Verb = "quorum-dies"   // all Sentinels but the Nth are killed, and then the master
	SlotMoves    Verb = "slot-moves"    // no fault: the slot of the lock moves to another master of a cluster, up to the stage Nth of four
	RowLags      Verb = "row-lags"      // the sales of a stock in Redis do not reach MySQL's row
	MinorityDies Verb = "minority-dies" // as many servers of the lock die as leave a majority, and the leader is one of them
	MajorityDies Verb = "majority-dies" // one server more than in MinorityDies dies, so no majority is left
	ClocksJump   Verb = "clocks-jump"   // the clocks of all Redis servers jump ahead by an hour

	Heals Verb = "heals" // the fault Of of this client or server ends
)

// Faults returns the verbs of faults, in the order of tables.
func Faults() []Verb {
	return []Verb{Freezes, Starves, Dies, Cut, Slow, Holds, HoldsRow, Loses, Disconnect, Deletes, Crashes, Restarts, Stalls, Jumps, FailsOver}
}

// IsFault reports whether a move injects a fault.
func (v Verb) IsFault() bool { return slices.Contains(Faults(), v) || slices.Contains(Written(), v) }

// Written returns the verbs of faults that are in written plans only, and in no random one.
func Written() []Verb {
	return []Verb{LosesPower, Boots, Refused, LosesRenewal, LosesSession, RunsAhead, Lags, RowLags, StaysBehind, QuorumDies, MinorityDies, MajorityDies, ClocksJump}
}

// Prepares reports whether a move only sets the scene for the faults that follow.
func (v Verb) Prepares() bool { return slices.Contains([]Verb{Boots, Renews, Lags, RowLags}, v) }

// OnServer reports whether a fault strikes a server of the lock, and not one client.
func (v Verb) OnServer() bool {
	return slices.Contains([]Verb{Deletes, Crashes, Restarts, Stalls, Jumps, FailsOver, Lags, RowLags, QuorumDies, SlotMoves, MinorityDies, MajorityDies, ClocksJump}, v)
}

// OnLink reports whether a fault strikes the links from a client to the servers of the lock, or to the database.
func (v Verb) OnLink() bool {
	return slices.Contains([]Verb{Cut, Slow, Holds, HoldsRow, Loses, Disconnect, LosesPower, Refused, LosesRenewal}, v)
}

// Lasts reports whether a fault stays until it is healed.
func (v Verb) Lasts() bool {
	return slices.Contains([]Verb{Freezes, Dies, Cut, Slow, Holds, HoldsRow, Jumps, FailsOver, LosesPower, Refused, Lags, StaysBehind, QuorumDies, MinorityDies, MajorityDies, ClocksJump}, v)
}

// EveryStep stands in place of a step: the sale stops at its first step, and each time that it resumes, at its next step.
const EveryStep api.Step = "every-step"

// Amount is a time, in leases or in seconds. The zero Amount means that no time is given.
type Amount struct {
	N      float64
	Leases bool // else seconds
}

// String returns the amount as a plan has it, such as "2 leases".
func (a Amount) String() string {
	unit := "s"
	switch {
	case a.Leases && a.N == 1:
		unit = "lease"
	case a.Leases:
		unit = "leases"
	}
	return strconv.FormatFloat(a.N, 'g', -1, 64) + " " + unit
}

// These are the numbers of a command in a plan that is carried out for each n: see Each.
const (
	N     = -1 // n
	NextN = -2 // n+1
)

// Move is one move of a plan.
type Move struct {
	Do        Verb
	Client    int      // 0 is A; of a move that no client makes, it is 0 too
	At        api.Step // where the request stops; empty means nowhere
	Nth       int      // the number of a command or a server, from 1
	Many      bool     // it locks for writing, or takes two permits
	Leased    bool     // it locks for a lease, which nothing renews
	Of        Verb     // the fault that Heals heals
	Try       bool     // the sale does not wait for the lock
	Again     bool     // the sale repeats one that was refused, and is skipped otherwise
	Nested    bool     // it acquires the lock a second time
	For       Amount   // how long the sale waits for the lock; of Passes, the time that passes
	Early     bool     // the sale waits until shortly before the end of a lease that nothing renews
	IfRenews  bool     // the time passes only for locks whose leases are renewed
	Names     string   // the two locks of a sale that takes several, in its order, such as "a then b"
	Low, High int      // the servers of the lock that a fault of a link concerns; 0 means all
	Works     Amount   // how long the sale works while it holds the lock
}

// Plan is a list of moves. At its end, all faults are healed, all requests go on, and one more client must buy.
type Plan []Move

const letters = "ABCD"

// Clients is the number of clients of a plan. A, B and C have a replica each, and D sends its requests to that of A.
const Clients = len(letters)

// guest is the client D, whose process is that of A. No fault is drawn for it, and it stops nowhere.
const guest = Clients - 1

// Replica returns the number of the replica to which a client sends its requests, from 0.
func Replica(client int) int { return client % guest }

// Name returns the letter of a client.
func Name(client int) string { return letters[client : client+1] }

// strikes reports whether a move injects a fault, or heals one.
func (m Move) strikes() bool {
	return m.Do == Heals || m.Do.IsFault()
}

// byNobody reports whether no client makes the move.
func (m Move) byNobody() bool {
	return m.Do.OnServer() || m.Do == Passes || m.Do == Each || m.Do == Heals && m.Of.OnServer()
}

// String returns the move as Parse reads it, such as "A sells at read".
func (m Move) String() string {
	var words []string
	p := phraseOf(m.Do, m.Of)
	switch {
	case m.Do == Passes && m.For != Amount{}:
		words = []string{m.For.String(), "pass"}
		if m.For.N == 1 {
			words[1] = "passes"
		}
	case p.after:
		words = []string{p.words, strconv.Itoa(m.Nth)}
	case m.byNobody() && p.numbered:
		words = []string{"server", strconv.Itoa(max(1, m.Nth)), p.words}
	case m.Do == Each && m.Nth > 1:
		words = []string{p.words, "from", strconv.Itoa(m.Nth)}
	case m.byNobody():
		words = []string{p.words}
	case p.numbered && m.Nth < 0:
		words = []string{Name(m.Client), p.words, map[int]string{N: "n", NextN: "n+1"}[m.Nth]}
	case p.numbered:
		words = []string{Name(m.Client), p.words, strconv.Itoa(max(1, m.Nth))}
	default:
		words = []string{Name(m.Client), p.words}
	}
	if m.Low > 0 {
		words = append(words, p.from, fmt.Sprintf("servers %d-%d", m.Low, m.High))
	}
	if m.Names != "" {
		words = append(words, m.Names)
	}
	for _, o := range options() {
		if *o.of(&m) {
			words = append(words, o.word)
		}
	}
	if m.For != (Amount{}) && m.Do != Passes {
		words = append(words, "for", m.For.String())
	}
	if m.Works != (Amount{}) {
		words = append(words, "working", m.Works.String())
	}
	if m.At != "" {
		words = append(words, "at", string(m.At))
	}
	return strings.Join(words, " ")
}

// String returns the plan on one line, as Parse reads it.
func (p Plan) String() string {
	moves := make([]string, len(p))
	for i, m := range p {
		moves[i] = m.String()
	}
	return strings.Join(moves, ", ")
}

// With returns the plan for the command n.
func (p Plan) With(n int) Plan {
	p = slices.Clone(p)
	for i := range p {
		if p[i].Nth < 0 {
			p[i].Nth = n - 1 - p[i].Nth
		}
	}
	return p
}

// Has reports whether a plan has a move with one of these verbs.
func (p Plan) Has(verbs ...Verb) bool {
	return slices.ContainsFunc(p, func(m Move) bool { return slices.Contains(verbs, m.Do) })
}

// option is a word that changes a request.
type option struct {
	word string
	of   func(*Move) *bool
	to   []Verb // the moves that it changes
}

func options() []option {
	return []option{
		{"try", func(m *Move) *bool { return &m.Try }, []Verb{Sells, Locks, Awaits}},
		{"again", func(m *Move) *bool { return &m.Again }, []Verb{Sells}},
		{"nested", func(m *Move) *bool { return &m.Nested }, []Verb{Sells}},
		{"many", func(m *Move) *bool { return &m.Many }, []Verb{Locks}},
		{"leased", func(m *Move) *bool { return &m.Leased }, []Verb{Locks}},
		{"briefly", func(m *Move) *bool { return &m.Early }, []Verb{Sells}},
		{"if renewed", func(m *Move) *bool { return &m.IfRenews }, []Verb{Passes}},
	}
}

// phrase holds the words of a move in the text of a plan, without its client or the number of its server.
type phrase struct {
	do, of   Verb
	words    string
	numbered bool   // it has the number of a server before it, or of a command after it
	after    bool   // the number of a server comes after the words
	from     string // the word before the servers of a fault of a link; empty if it concerns all
}

func phrases() []phrase {
	return []phrase{
		{do: Sells, words: "sells"},
		{do: Resumes, words: "resumes"},
		{do: Ends, words: "ends"},
		{do: Stops, words: "stops"},
		{do: Reads, words: "reads"},
		{do: Cancels, words: "cancels"},
		{do: Locks, words: "locks"},
		{do: Unlocks, words: "unlocks"},
		{do: Awaits, words: "awaits"},
		{do: Counts, words: "counts"},
		{do: Freezes, words: "freezes"},
		{do: Heals, of: Freezes, words: "thaws"},
		{do: Starves, words: "starves"},
		{do: Dies, words: "dies"},
		{do: Heals, of: Dies, words: "starts"},
		{do: Cut, words: "is cut off", from: "from"},
		{do: Heals, of: Cut, words: "reconnects"},
		{do: Slow, words: "slows"},
		{do: Heals, of: Slow, words: "speeds up"},
		{do: HoldsRow, words: "holds row", numbered: true},
		{do: Heals, of: HoldsRow, words: "delivers row"},
		{do: Holds, words: "holds", numbered: true},
		{do: Heals, of: Holds, words: "delivers"},
		{do: Loses, words: "loses", numbered: true},
		{do: Disconnect, words: "disconnects"},
		{do: Passes, words: "a lease passes"},
		{do: Each, words: "for each n"},
		{do: Deletes, words: "locks deleted"},
		{do: Crashes, words: "crashes", numbered: true},
		{do: Restarts, words: "restarts", numbered: true},
		{do: Stalls, words: "stalls", numbered: true},
		{do: Jumps, words: "jumps", numbered: true},
		{do: Heals, of: Jumps, words: "clocks agree"},
		{do: Renews, words: "renews"},
		{do: RunsAhead, words: "runs ahead"},
		{do: LosesPower, words: "loses power"},
		{do: Boots, words: "is restarted"},
		{do: StaysBehind, words: "stays with the old master"},
		{do: Heals, of: StaysBehind, words: "joins the new master"},
		{do: QuorumDies, words: "all Sentinels die but", after: true},
		{do: Heals, of: QuorumDies, words: "the Sentinels start"},
		{do: SlotMoves, words: "the slot moves to stage", after: true},
		{do: Refused, words: "is refused", from: "by"},
		{do: Heals, of: Refused, words: "is served"},
		{do: LosesRenewal, words: "loses a renewal"},
		{do: LosesSession, words: "loses its session"},
		{do: Lags, words: "replication stops"},
		{do: RowLags, words: "writing behind stops"},
		{do: MinorityDies, words: "a minority dies"},
		{do: MajorityDies, words: "a majority dies"},
		{do: ClocksJump, words: "all clocks jump"},
		{do: FailsOver, words: "redis fails over"},
		{do: Heals, of: FailsOver, words: "redis fails back"},
	}
}

func phraseOf(do, of Verb) phrase {
	all := phrases()
	return all[slices.IndexFunc(all, func(p phrase) bool { return p.do == do && (do != Heals || p.of == of) })]
}

// Parse reads a plan as a person writes it, such as "A sells at read, B sells, A resumes". An error names the words that
// exist.
func Parse(text string) (p Plan, err error) {
	for part := range strings.SplitSeq(text, ",") {
		m, err := parseMove(strings.Fields(part))
		switch eachN := len(p) > 0 && p[0].Do == Each; {
		case err != nil:
		case m.Do == Each && len(p) > 0:
			err = errors.New("it must be the first move")
		case m.Nth < 0 && !eachN:
			err = errors.New("n is a number only after the move for each n")
		}
		if err != nil {
			return nil, fmt.Errorf("move %d of the plan, %q: %w", len(p)+1, strings.TrimSpace(part), err)
		}
		p = append(p, m)
	}
	return p, nil
}

func parseMove(words []string) (m Move, err error) {
	if len(words) == 0 {
		return m, fmt.Errorf("it is empty; write a client from A to %s and what it does, such as A sells", Name(guest))
	}
	if i := max(slices.Index(words, "pass"), slices.Index(words, "passes")); i > 0 && words[0] != "a" {
		m.Do = Passes
		rest, err := amount(&m.For, words[:i])
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("the word %q is not known before passes", rest[0])
		}
		if err == nil {
			err = m.modify(words[i+1:], false)
		}
		return m, err
	}
	byClient, number := false, 0
	switch {
	case len(words[0]) == 1 && strings.Contains(letters, words[0]):
		m.Client, byClient, words = strings.Index(letters, words[0]), true, words[1:]
	case words[0] == "server" && len(words) > 1:
		if number, err = strconv.Atoi(words[1]); err != nil || number < 1 {
			return m, fmt.Errorf("%q must be the number of a server, from 1", words[1])
		}
		words = words[2:]
	case len(words[0]) == 1 && words[0] != "a":
		return m, fmt.Errorf("there is no client %s: the clients are A, B and C, each on a replica of its own, and D in the process of A", words[0])
	}
	var possible []string
	found, taken := phrase{}, 0
	for _, p := range phrases() {
		subject := Move{Do: p.do, Of: p.of}
		if subject.byNobody() == byClient || !byClient && p.numbered != (number > 0) {
			continue
		}
		possible = append(possible, p.words)
		said := strings.Fields(p.words)
		if len(said) > taken && len(words) >= len(said) && slices.Equal(words[:len(said)], said) { // loses power, not loses
			found, taken = p, len(said)
		}
	}
	words = words[taken:]
	if found.do == "" {
		return m, noSuchMove(words, possible, byClient, number)
	}
	m.Do, m.Of, m.Nth = found.do, found.of, number
	if err := m.modify(words, found.numbered && byClient || found.after); err != nil {
		return m, err
	}
	if m.Client == guest && (m.At != "" || m.strikes()) {
		return m, fmt.Errorf("%s shares the process of %s: it stops at no step, and no fault strikes it alone", Name(guest), Name(Replica(guest)))
	}
	return m, nil
}

func noSuchMove(words, possible []string, byClient bool, number int) error {
	who := "a move without a client"
	switch {
	case byClient:
		who = "a client"
	case number > 0:
		who = "a server"
	}
	if nearest := suggest.Nearest(strings.Join(words, " "), possible); nearest != "" {
		return fmt.Errorf("there is no %q; did you mean %q?", strings.Join(words, " "), nearest)
	}
	for n := len(words) - 1; n > 0; n-- { // the words after those of the move are not part of its name
		if nearest := suggest.Nearest(strings.Join(words[:n], " "), possible); nearest != "" {
			return fmt.Errorf("there is no %q; did you mean %q?", strings.Join(words[:n], " "), nearest)
		}
	}
	return fmt.Errorf("there is no %q; what %s does: %s", strings.Join(words, " "), who, strings.Join(possible, ", "))
}

// modify reads the words after those of the move.
func (m *Move) modify(words []string, numbered bool) (err error) {
	if m.Do == Each {
		m.Nth = 1
		if len(words) == 2 && words[0] == "from" {
			m.Nth, err = strconv.Atoi(words[1])
			words = nil
		}
		if err != nil || m.Nth < 1 {
			return errors.New("it must be for each n, or for each n from a number above 0")
		}
	}
	if numbered {
		m.Nth = 1
		if n := map[string]int{"n": N, "n+1": NextN}; len(words) > 0 && n[words[0]] != 0 {
			m.Nth, words = n[words[0]], words[1:]
		} else if len(words) > 0 {
			if m.Nth, err = strconv.Atoi(words[0]); err != nil || m.Nth < 1 {
				return fmt.Errorf("%q must be the number of a command, from 1", words[0])
			}
			words = words[1:]
		}
	}
	for len(words) > 0 {
		rest, word := words, words[0]
		words = words[1:]
		sale := m.Do == Sells
		i := slices.IndexFunc(options(), func(o option) bool {
			return strings.HasPrefix(strings.Join(rest, " ")+" ", o.word+" ") && slices.Contains(o.to, m.Do)
		})
		switch {
		case i >= 0:
			*options()[i].of(m) = true
			words = rest[len(strings.Fields(options()[i].word)):]
		case word != "" && word == phraseOf(m.Do, m.Of).from && len(words) > 1 && words[0] == "servers":
			if n, err := fmt.Sscanf(words[1], "%d-%d", &m.Low, &m.High); n != 2 || err != nil || m.Low < 1 || m.High < m.Low {
				return fmt.Errorf("%q must be numbers of servers, such as 1-3", words[1])
			}
			words = words[2:]
		case sale && len(words) > 1 && words[0] == "then":
			m.Names, words = word+" then "+words[1], words[2:]
		case word == "at" && len(words) > 0 && (sale || m.Do == Resumes):
			m.At, words = api.Step(words[0]), words[1:]
		case word == "for" && (sale || m.Do == Slow):
			words, err = amount(&m.For, words)
		case word == "working" && sale:
			words, err = amount(&m.Works, words)
		default:
			return fmt.Errorf("the word %q is not known here; after %s may come: %s", word, phraseOf(m.Do, m.Of).words, strings.Join(m.modifiers(), ", "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// modifiers lists what may follow the words of a move.
func (m *Move) modifiers() (all []string) {
	for _, o := range options() {
		if slices.Contains(o.to, m.Do) {
			all = append(all, o.word)
		}
	}
	if m.Do == Sells {
		all = append(all, "for 0.5 s", "working 2 leases", "a then b")
	}
	if from := phraseOf(m.Do, m.Of).from; from != "" {
		all = append(all, from+" servers 1-3")
	}
	if m.Do == Slow {
		all = append(all, "for 2 s")
	}
	if m.Do == Sells || m.Do == Resumes {
		all = append(all, "at STEP")
	}
	if len(all) == 0 {
		all = []string{"nothing"}
	}
	return all
}

// amount reads a time, such as "0.5 s" or "2 leases", from the first words.
func amount(to *Amount, words []string) (rest []string, err error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("a time is missing, such as 0.5 s or 2 leases")
	}
	n, err := strconv.ParseFloat(words[0], 64)
	if words[0] == "a" {
		n, err = 1, nil
	}
	const most = 100
	if err != nil || !(n > 0 && n <= most) {
		return nil, fmt.Errorf("%q must be a number above 0, and not above %d", words[0], most)
	}
	to.N = n
	switch words[1] {
	case "lease", "leases":
		to.Leases = true
	case "s":
	default:
		return nil, fmt.Errorf("%q must be s or leases", words[1])
	}
	return words[2:], nil
}
