package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/experiment"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/view/matrix"
	"oversell/view/report"
	"oversell/view/terminal"
)

type chaosFlags struct {
	campaign experiment.Campaign
	plan     string
	labs     int
	fenced   bool
	quiet    bool
	files    files
	command  string // as it was typed
}

const chaosLong = `Starts a separate lab with the servers of this machine, and draws random plans: which client begins
a sale, at which step it stops, which fault strikes it or a server, when the fault ends, and who goes
on. Each seed draws its own mix of moves and faults. After each plan, the row, the history of the
lock's grants and the progress are judged.

A plan that fails is repeated and shortened. What remains is printed as numbered steps, with the
command that repeats it. If the card of the strategy names the hazard, the finding is no news.
Otherwise, the strategy gets no more plans. No plan begins later than --for. Those that failed are
then repeated and shortened for as long again, or for one minute if that is longer. A plan that does
not fail again in 20 tries, or that this end or Ctrl-C leaves unfinished, counts as far as it was
shortened, and is kept, with its timeline, in the folder results/chaos.

The table says how often each fault was injected, how often it had its effect, and in which phase of
a request. About a fault that never landed, the run is inconclusive. A plan that contradicts a card
while this machine is too busy for renewals is repeated, and does not count if it stays so.

STRATEGY may also be semaphore:redis, semaphore:zk, read-write:redis, read-write:zk or latch:redis:
clients lock and unlock such a primitive by hand.

Exit status:
  0    every finding is a hazard that the strategy's card names
  1    a finding contradicts a card, also before Ctrl-C, or the command failed
  2    inconclusive: a fault that applies never landed, no plan has a verdict, or
       a finding that contradicts a card did not repeat; or the command line is wrong
  130  stopped by Ctrl-C, with the findings until then`

func chaosCommand() *cobra.Command {
	var flags chaosFlags
	cmd := &cobra.Command{
		Use:   "chaos STRATEGY...",
		Short: "Try locks in random plans of moves and faults, and shorten those that find a bug",
		Long:  chaosLong,
		Example: `  oversell chaos redis zk --for 10m
  oversell chaos redis --fenced --seed 7
  oversell chaos none --plan 'A sells at read, B sells, A resumes'`,
		ValidArgsFunction: offerStrategies(-1),
		RunE: checked(&flags.files, flags.check, func(ctx context.Context, out, errOut io.Writer) error {
			return flags.run(ctx, flags.start, out, errOut)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&flags.fenced, "fenced", false, "with fenced writes, on strategies that have a fencing token")
	f.Int64Var(&flags.campaign.Seed, "seed", 1, "draws the first plan; each plan has the next seed")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "print only findings and tables")
	flags.addCampaign(f)
	flags.files.add(f, "json", "write the findings to `FILE`")
	flags.files.add(f, "html", "write the findings with timelines to `FILE`, a page that needs no other files")
	return cmd
}

func (f *chaosFlags) check(cmd *cobra.Command, args []string) error {
	f.command = commandLine(cmd, args)
	if len(args) == 0 {
		return errors.New("name one or more strategies. List them: oversell strategies")
	}
	primitives := player.Primitives()
	for _, id := range args {
		var subject player.Subject
		if slices.Contains(primitives, id) {
			subject = player.PrimitiveSubject(id)
		} else {
			cards, err := cardsOf([]string{id}, primitives...)
			if err != nil {
				return err
			}
			subject.Card = cards[0]
		}
		if f.fenced && !subject.Card.Fenced {
			return fmt.Errorf("%s has no fencing token: leave out --fenced", id)
		}
		subject.Fenced = f.fenced
		f.campaign.Subjects = append(f.campaign.Subjects, subject)
	}
	return f.checkCampaign()
}

func (f *chaosFlags) start(ctx context.Context, errOut io.Writer) (*rig.Rig, error) {
	return startLab(ctx, f.quiet, errOut, breakable)
}

// run starts the labs, and carries out the campaign in them.
func (f *chaosFlags) run(ctx context.Context, start func(context.Context, io.Writer) (*rig.Rig, error), out, errOut io.Writer) (err error) {
	var beds []*player.Testbed
	for range f.labs {
		lab, failed := start(ctx, errOut)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, lab.Close()) }()
		bed, failed := player.Open(ctx, lab)
		if failed != nil {
			return failed
		}
		defer bed.Close()
		beds = append(beds, bed)
	}
	if f.quiet {
		errOut = io.Discard
	}
	return f.conduct(ctx, beds, out, errOut)
}

// addCampaign adds the flags that chaos and judge --chaos share.
func (f *chaosFlags) addCampaign(set *pflag.FlagSet) {
	set.DurationVar(&f.campaign.For, "for", time.Minute, "begin random plans for this time; to repeat and shorten them takes as long again at most, or a minute")
	set.IntVar(&f.labs, "labs", 1, "number of labs that carry out plans at the same time, 1 to 16")
	set.StringVar(&f.plan, "plan", "", "carry out only this `PLAN`, as an earlier run has printed it")
}

func (f *chaosFlags) checkCampaign() (err error) {
	if f.labs < 1 || f.labs > 16 {
		return fmt.Errorf("--labs %d: must be 1 to 16", f.labs)
	}
	if f.campaign.For < 0 {
		return fmt.Errorf("--for %v: must not be negative", f.campaign.For)
	}
	if f.plan != "" {
		f.campaign.For, f.labs = 0, 1
		f.campaign.Plan, err = chaos.Parse(f.plan)
		if err == nil && f.campaign.Plan.Has(chaos.Each) {
			err = errors.New("--plan: for each n is a plan for each command: oversell break --plan carries it out")
		}
	}
	return err
}

// conduct carries out the campaign, and prints what it finds.
func (f *chaosFlags) conduct(ctx context.Context, beds []*player.Testbed, out, errOut io.Writer) error {
	text := f.files.textOutput(out, errOut)
	surveys, err := f.campaign.Conduct(ctx, beds, &chaosWatcher{out: text, progress: errOut})
	ctx = context.WithoutCancel(ctx) // what it has found until Ctrl-C counts
	contradicted, inconclusive, screen := false, false, terminal.Of(text)
	var found []experiment.Result
	for _, s := range surveys {
		_, _ = fmt.Fprintln(text, screen.Wrap(matrix.SurveySentence(s).In(language()), 0))
		if table := matrix.SurveyTable(s, language()); len(table.Rows) > 0 {
			table.Write(text, screen)
		}
		for _, finding := range s.Findings {
			if f.plan != "" {
				matrix.WriteEventLog(text, finding.Result, screen, language())
			}
			found = append(found, finding.Result)
			if finding.Tries == 0 || finding.Stopped { // nothing else may show it again
				err = errors.Join(err, f.keep(ctx, finding.Result, text))
			}
		}
		contradicted, inconclusive = contradicted || s.Contradicted(), inconclusive || s.Inconclusive()
	}
	_, writers := matrixFiles(ctx, found, map[string]string{}, f.command)
	return concluded(contradicted, inconclusive, errors.Join(err, f.files.write(writers, out, errOut)))
}

// unrepeated is the folder of the findings that did not repeat, or were not shrunk to the end.
const unrepeated = "results/chaos"

// keep writes the timeline of a finding, and says where.
func (f *chaosFlags) keep(ctx context.Context, r experiment.Result, text io.Writer) error {
	path := filepath.Join(unrepeated, fmt.Sprintf("%s-%d.html", strings.NewReplacer(" ", "", ":", "-").Replace(r.Name()), r.Seed))
	_, writers := matrixFiles(ctx, []experiment.Result{r}, map[string]string{}, f.command)
	err := os.MkdirAll(unrepeated, 0o750)
	if err == nil {
		err = report.WriteFile(path, writers["html"])
	}
	if err == nil {
		_, err = fmt.Fprintln(text, api.Textf("The run of seed %d is kept, with its timeline: %s", "种子 %d 的那次运行连同时间线保存在：%s", r.Seed, path).In(language()))
	}
	return err
}

// chaosWatcher prints a line for each plan, and each finding.
type chaosWatcher struct {
	out, progress io.Writer
}

func (w *chaosWatcher) Ran(s *experiment.Survey, d experiment.Drawn, took time.Duration) {
	_, _ = fmt.Fprintf(w.progress, "%s %s, seed %d, %.1f s: %s\n", d.Verdict.Sign(), s.Subject.Name(), d.Seed, took.Seconds(), d.Plan)
}

func (w *chaosWatcher) Failed(_ *experiment.Survey, _ int64, err error) {
	_, _ = fmt.Fprintf(w.progress, "? this plan could not be carried out: %v\n", err)
}

func (w *chaosWatcher) Shrinking(_ *experiment.Survey, p chaos.Plan) {
	_, _ = fmt.Fprintf(w.progress, "  again: %s\n", p)
}

func (w *chaosWatcher) Found(_ *experiment.Survey, f experiment.Finding) {
	matrix.WriteFinding(w.out, f, terminal.Of(w.out), language())
}
