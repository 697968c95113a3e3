package player

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/chaos"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// struck is a fault that was injected.
type struck struct {
	chaos.Move
	fault fault.Fault
	heal  fault.Heal
	span  int // its index in spans

	landed bool
	missed error         // why it has not landed yet
	lost   bool          // the process whose command was held back has died: the command is never sent
	phases []chaos.Phase // the phases of the requests that the fault struck
}

// strike injects the fault of a move, and counts it. It returns false for done if the move is impossible, for example
// because the fault lasts already.
func (p *Player) strike(ctx context.Context, m chaos.Move) (done bool, err error) {
	on := p.on[m.Client]
	if !m.Do.IsFault() {
		return false, nil
	}
	if p.gone[on] && !m.Do.OnServer() || p.index(m.Do, m.Client) >= 0 || m.Do.OnLink() && !p.linksFree(m.Client) && !p.combines(m) {
		return false, nil
	}
	if m.Do.OnServer() && p.failedOver() || m.Do == chaos.FailsOver && !p.allLinksFree() {
		return false, nil
	}
	f, ok := p.faultOf(ctx, m)
	if !ok {
		return false, nil
	}
	p.touched[m.Client] = p.touched[m.Client] || m.Do == chaos.Holds || m.Do == chaos.HoldsRow || m.Do == chaos.Loses
	count := p.coverage[m.Do]
	count.Injected++
	p.coverage[m.Do] = count
	s := &struck{Move: m, fault: f, span: len(p.spans), phases: p.phases(m)}
	p.spans = append(p.spans, history.Span{What: f.Name, Who: f.Target, From: p.bed.Since()})
	if p.bed.Idle {
		s.missed = errors.New("no fault is injected")
		p.injected = append(p.injected, s)
		return false, nil
	}
	if m.Do == chaos.StaysBehind && p.sales { // else a lock would be lost by the fail-over, and not by what follows
		err = fault.MastersOf(p.bed.Rig).AwaitReplicated(ctx)
	}
	if err == nil {
		s.heal, err = f.Inject(ctx)
	}
	if err != nil {
		return true, fmt.Errorf("%s: %w", m, err)
	}
	if m.Do == chaos.FailsOver {
		if err := p.behind(context.WithoutCancel(ctx)); err != nil {
			return true, err
		}
	}
	if err = p.awaitMasters(ctx, m); err != nil {
		return true, errors.Join(err, s.heal(context.WithoutCancel(ctx)))
	}
	if p.struckAt == 0 {
		p.struckAt = p.bed.Since()
	}
	if m.Do == chaos.Freezes || m.Do == chaos.Dies {
		p.gone[on] = true
	}
	if m.Do == chaos.Dies {
		for _, r := range p.runs {
			r.clients[m.Client].stopped = ""
		}
		for _, held := range p.lasting {
			held.lost = held.lost || (held.Do == chaos.Holds || held.Do == chaos.HoldsRow) && held.Client == m.Client
		}
	}
	p.lasting, p.injected = append(p.lasting, s), append(p.injected, s)
	return true, p.follow(ctx, s)
}

// follow does what follows the injection of a fault: it waits for its effect, or ends a fault that does not last.
func (p *Player) follow(ctx context.Context, s *struck) (err error) {
	switch s.Do {
	case chaos.LosesPower: // after its links: no server gets the end of a connection
		_, err = p.strike(ctx, chaos.Move{Do: chaos.Dies, Client: s.Client})
		p.injected = p.injected[:len(p.injected)-1] // the end of a process is no proof that its links were silent
		return err
	case chaos.LosesRenewal:
		_ = Within(ctx, 2*Lease, "the answer to a renewal is lost", func() bool { return s.fault.Landed(ctx) == nil }) // else it has not landed
		return ctx.Err()
	case chaos.Starves, chaos.Stalls:
		err = sleep(ctx, Lease/2)
	}
	if !s.Do.Lasts() && s.Do != chaos.Loses && s.Do != chaos.RunsAhead {
		err = errors.Join(err, p.endFault(ctx, s))
	}
	return err
}

// combines reports whether a fault may be injected into links whose answers are slow. Only a plan for each n does so,
// with Holds.
func (p *Player) combines(m chaos.Move) bool {
	return m.Do == chaos.Holds && p.Nth > 0 && p.index(chaos.Slow, m.Client) >= 0
}

// lostRenewal returns a fault that loses the answer to a renewal. The holder is stopped and has its lock, so the next
// command from its replica to the servers of the lock is a renewal.
func (p *Player) lostRenewal(l *rig.Link) fault.Fault {
	text := p.text()
	switch service := p.runs[0].subject.Card.LockService(); {
	case service == "zookeeper" || service == "etcd": // their renewals are heartbeats
		return fault.LostReplies(l)
	case text != "" && service == "mysql":
		text = "UPDATE " // a renewal of ours names the row by its number
	}
	return fault.LostAnswer(l, text, 1)
}

// renew waits until the lock of a program on trial has just been renewed, so that the next commands are no renewals.
func (p *Player) renew(ctx context.Context, m chaos.Move) (done bool, err error) {
	links := p.links(ReplicaName(p.on[m.Client]), chaos.Move{Do: chaos.Holds})
	if card := p.runs[0].subject.Card; !card.Renews || !card.OnTrial() || len(links) == 0 || p.bed.Idle {
		return false, nil
	}
	var gates []fault.Fault
	for _, l := range links {
		gates = append(gates, fault.HoldCommand("", 1, l))
	}
	heal, err := fault.Together(gates...).Inject(ctx)
	if err != nil {
		return false, err
	}
	_ = Within(ctx, Lease/2, "a renewal", func() bool { // on all servers, if there are several
		return !slices.ContainsFunc(gates, func(g fault.Fault) bool { return g.Command() == "" })
	})
	return true, errors.Join(heal(ctx), restore(links)(ctx))
}

// failedOver reports whether Redis has failed over: then the links lead to the promoted replica.
func (p *Player) failedOver() bool { return p.index(chaos.FailsOver, 0) >= 0 }

// linksFree reports whether the links of a client have no fault. A link has one at a time.
func (p *Player) linksFree(client int) bool {
	return !p.failedOver() && !p.touched[client] && !slices.ContainsFunc(p.lasting, func(s *struck) bool { return s.Do.OnLink() && s.Client == client })
}

func (p *Player) allLinksFree() bool {
	for client := range p.on {
		if !p.linksFree(client) {
			return false
		}
	}
	return true
}

// index returns the index of a fault that lasts, or -1.
func (p *Player) index(v chaos.Verb, client int) int {
	return slices.IndexFunc(p.lasting, func(s *struck) bool { return s.Do == v && s.Client == client })
}

// heal heals the fault that a move names, if it lasts.
func (p *Player) heal(ctx context.Context, m chaos.Move) (done bool, err error) {
	i := p.index(m.Of, m.Client)
	if i < 0 {
		return false, nil
	}
	if err = p.endFault(ctx, p.lasting[i]); err == nil && m.Of == chaos.QuorumDies {
		err = p.bed.Rig.AwaitReady(ctx)
	}
	for _, r := range p.runs {
		if b := r.clients[m.Client]; err == nil && b.running() && !p.gone[b.on] && b.stopped == "" {
			err = r.settle(ctx, b)
		}
	}
	return true, err
}

// phases returns the phases of the requests that a fault strikes now.
func (p *Player) phases(m chaos.Move) (all []chaos.Phase) {
	for _, r := range p.runs {
		for i, b := range r.clients {
			if i == m.Client || m.Do.OnServer() {
				all = append(all, r.phase(b))
			}
		}
	}
	return all
}

func (p *Player) observeAll(ctx context.Context) {
	p.changing.Lock()
	defer p.changing.Unlock()
	for _, s := range p.lasting {
		p.observe(ctx, s)
	}
}

// observe counts a fault once it has landed, which means that it had its effect. A fault of a link lands at a message,
// which comes later than the injection.
func (p *Player) observe(ctx context.Context, s *struck) {
	if s.landed {
		return
	}
	if s.missed = s.fault.Landed(ctx); s.missed != nil {
		return
	}
	s.landed = true
	if s.Do.OnLink() {
		s.phases = p.phases(s.Move)
	}
	count := p.coverage[s.Do]
	count.Landed++
	for _, phase := range s.phases {
		count.In[phase]++
	}
	p.coverage[s.Do] = count
}

// endFault ends a fault.
func (p *Player) endFault(ctx context.Context, s *struck) error {
	p.observe(ctx, s)
	p.lasting = slices.DeleteFunc(p.lasting, func(other *struck) bool { return other == s })
	span := &p.spans[s.span]
	span.To = p.bed.Since()
	held := slices.ContainsFunc(s.phases, func(at chaos.Phase) bool { return at == chaos.Critical || at == chaos.Write })
	if s.landed && held && p.runs[0].subject.Card.Renews && span.To-span.From > Lease/3 {
		count := p.coverage[s.Do]
		count.Renewal++
		p.coverage[s.Do] = count
	}
	if i := slices.IndexFunc(p.lasting, func(other *struck) bool { return other.Do.OnLink() && other.Client == s.Client }); s.Do == chaos.Dies && i >= 0 {
		if err := p.endFault(ctx, p.lasting[i]); err != nil { // a process that is cut off would never be ready
			return err
		}
	}
	heal := s.heal
	if s.lost {
		heal = restore(p.links(ReplicaName(p.on[s.Client]), s.Move))
	}
	if err := heal(ctx); err != nil {
		return fmt.Errorf("heal %s: %w", s.Move, err)
	}
	if s.Do == chaos.Freezes || s.Do == chaos.Dies {
		delete(p.gone, p.on[s.Client])
	}
	p.bed.http.CloseIdleConnections() // the process may end those that were idle meanwhile, as it receives the next request
	return nil
}

// faultOf returns the fault of a move. ok is false if it cannot strike these strategies.
func (p *Player) faultOf(ctx context.Context, m chaos.Move) (f fault.Fault, ok bool) {
	on := ReplicaName(p.on[m.Client])
	switch m.Do {
	case chaos.FailsOver:
		if p.masters != nil {
			return p.masters.Replace(), true
		}
		return fault.Failover(p.bed.Rig), true
	case chaos.QuorumDies:
		return fault.MastersOf(p.bed.Rig).LoseQuorum(fmt.Sprintf("sentinel-%d", m.Nth)), true
	case chaos.StaysBehind:
		return fault.MastersOf(p.bed.Rig).Split(on), true
	case chaos.MinorityDies, chaos.MajorityDies, chaos.ClocksJump:
		return p.onMany(ctx, m.Do)
	}
	if m.Do.OnServer() && m.Do != chaos.Deletes {
		return p.onServer(m)
	}
	switch m.Do {
	case chaos.Deletes:
		var all []fault.Fault
		for _, service := range p.services() {
			all = append(all, fault.DeleteLocks(p.bed.Rig, service))
		}
		return allOf(all)
	case chaos.Freezes, chaos.Starves, chaos.Dies, chaos.RunsAhead:
		server, err := p.bed.Rig.Server(on)
		switch {
		case err != nil:
			return f, false
		case m.Do == chaos.RunsAhead:
			return fault.ProgramClock(server, 10*time.Second), true
		case m.Do != chaos.Dies:
			return fault.Stop(server), true
		}
		return fault.Kill(server), true
	}
	links := p.links(on, m)
	if m.Do == chaos.LosesPower {
		links = p.bed.links(on, append(api.LockServices(), "pgbouncer")...)
	}
	switch {
	case len(links) == 0:
		return f, false
	case m.Do == chaos.HoldsRow:
		f = fault.HoldCommand(rig.StockTable, m.Nth, links...)
		f.Name = history.HeldStatement
		return f, true
	case m.Do == chaos.Holds && slices.Equal(p.services(), []string{"etcd"}): // each command goes to another member
		return fault.HoldCommand(p.text(), m.Nth, links...), true
	}
	var all []fault.Fault
	for _, link := range links {
		all = append(all, p.onLink(m, link))
	}
	return allOf(all)
}

// onServer returns the fault of the Nth server of each kind.
func (p *Player) onServer(m chaos.Move) (fault.Fault, bool) {
	var all []fault.Fault
	for _, servers := range p.servers() {
		if m.Nth > len(servers) {
			continue
		}
		server := servers[max(0, m.Nth-1)]
		all = append(all, map[chaos.Verb]fault.Fault{
			chaos.Crashes: fault.Kill(server), chaos.Restarts: fault.Restart(server), chaos.Stalls: fault.Stop(server), chaos.Jumps: fault.ClockJump(server, time.Hour),
		}[m.Do])
	}
	return allOf(all)
}

func allOf(all []fault.Fault) (f fault.Fault, ok bool) {
	if len(all) == 0 {
		return f, false
	}
	return fault.Together(all...), true
}

// cutRow cuts the links to MySQL, so that the sales of a stock in Redis do not reach MySQL's row until Redis fails over,
// or ReachRow is called.
func (p *Player) cutRow(ctx context.Context) (done bool, err error) {
	if p.bed.Idle || p.runs[0].subject.Card.Stock != "redis" {
		return false, nil
	}
	row, _ := allOf(cuts(p.bed.links("", "mysql")))
	p.behind, err = row.Inject(ctx)
	return true, err
}

// services returns the kinds of servers that keep the locks, such as redis, each kind once.
func (p *Player) services() (all []string) {
	for _, r := range p.runs {
		all = append(all, r.subject.Card.LockService())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// servers returns the servers of the locks, for each kind in their order.
func (p *Player) servers() (all [][]*rig.Server) {
	kinds := map[string][]*rig.Server{}
	for _, r := range p.runs {
		kind := r.subject.Card.LockService()
		if servers := p.bed.lockServers(r.subject.Card); len(servers) > len(kinds[kind]) {
			kinds[kind] = servers
		}
	}
	for _, kind := range p.services() {
		all = append(all, kinds[kind])
	}
	return all
}

// links returns the links of a replica that a fault strikes: to the servers of the locks, or to the database.
func (p *Player) links(on string, m chaos.Move) []*rig.Link {
	onPostgres := slices.Contains(p.services(), "postgres")
	var ofLock []*rig.Server
	for _, servers := range p.servers() {
		ofLock = append(ofLock, servers...)
	}
	return slices.DeleteFunc(p.bed.Rig.Links(), func(l *rig.Link) bool {
		struck := slices.ContainsFunc(ofLock, func(s *rig.Server) bool { return s.Name() == l.To() }) || onPostgres && l.To() == "pgbouncer"
		if m.Do == chaos.HoldsRow {
			struck = rig.Kind(l.To()) == "mysql"
		}
		return l.From() != on || !struck || m.Low > 0 && !concerns(m, l.To())
	})
}

// text returns the text that marks a command as one of the lock: the lock's name. It is empty for a lock on trial: its
// program may use any names, and nothing else runs on its replica.
func (p *Player) text() string {
	if s := p.runs[0].subject; !s.Card.OnTrial() {
		return s.lockName()
	}
	return ""
}

func (p *Player) onLink(m chaos.Move, l *rig.Link) fault.Fault {
	switch m.Do {
	case chaos.Cut, chaos.LosesPower:
		return fault.Cut(l)
	case chaos.Slow:
		return fault.Delay(l, p.lasts(m.For, time.Second/2)/time.Duration(max(1, p.Nth))) // of each of n answers
	case chaos.LosesRenewal:
		return p.lostRenewal(l)
	case chaos.Holds:
		return fault.HoldCommand(p.text(), m.Nth, l)
	case chaos.Loses:
		return fault.LostAnswer(l, p.text(), m.Nth)
	case chaos.Refused:
		return fault.Reset(l)
	default:
		return fault.Disconnect(l)
	}
}

// concerns reports whether a server is one of those that a move names.
func concerns(m chaos.Move, server string) bool {
	_, number, _ := strings.Cut(server, "-")
	n, err := strconv.Atoi(number)
	return err == nil && m.Low <= n && n <= m.High
}

// onMany returns a fault of many servers: it kills a minority or a majority of each ensemble, or changes the clock of
// each Redis.
func (p *Player) onMany(ctx context.Context, v chaos.Verb) (f fault.Fault, ok bool) {
	var all []fault.Fault
	if v == chaos.ClocksJump {
		for _, s := range p.bed.Rig.Servers() {
			if rig.Kind(s.Name()) == "redis" && !strings.HasSuffix(s.Name(), "replica") {
				all = append(all, fault.ClockJump(s, time.Hour))
			}
		}
		return allOf(all)
	}
	for _, servers := range p.servers() {
		if len(servers) < 3 {
			continue
		}
		n := (len(servers) - 1) / 2
		if v == chaos.MajorityDies {
			n++
		} else {
			servers = p.leaderLast(ctx, servers)
		}
		for _, s := range servers[len(servers)-n:] {
			all = append(all, fault.Kill(s))
		}
	}
	return allOf(all)
}

// leaderLast returns the servers of an ensemble with the leader last. If no leader is found, the order stays as it is.
func (p *Player) leaderLast(ctx context.Context, servers []*rig.Server) []*rig.Server {
	at := p.bed.Rig.Addresses()
	kinds := map[string]struct {
		addresses []string
		leads     func(context.Context, string) (bool, error)
	}{"zookeeper": {at.Zookeeper, backend.ZooKeeperLeads}, "etcd": {at.Etcd, backend.EtcdLeads}}
	kind := rig.Kind(servers[0].Name())
	for i, addr := range kinds[kind].addresses {
		if yes, err := kinds[kind].leads(ctx, addr); err == nil && yes && i < len(servers) {
			leader := servers[i]
			return append(slices.Delete(slices.Clone(servers), i, i+1), leader)
		}
	}
	return servers
}
