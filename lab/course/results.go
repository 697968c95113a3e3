package course

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/expr-lang/expr"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/history"
	"oversell/lab/measure"
)

// Results are what the commands of a question returned. Conditions refer to them by name.
type Results struct {
	text     string
	requests []*request
	byName   map[string]map[string]any // of run, by strategy
	byGuard  map[string]map[string]any // of a scenario, by guard
	verdicts map[string]any            // of break, by strategy
	Verdicts []Sentence
	Runs     []measure.Result // of run, without those of scenarios
	// Recording has the requests of curl and their steps.
	Recording history.Recording
}

// Sentence is a verdict about one strategy or guard. Class is the CSS class of the sentence.
type Sentence struct {
	api.Text
	Class      string
	Experiment *experiment.Result // of break, with its recording; otherwise nil
}

// NewResults returns results without any.
func NewResults() *Results {
	return &Results{byName: map[string]map[string]any{}, byGuard: map[string]map[string]any{}, verdicts: map[string]any{}}
}

// Answers returns the JSON answers to the requests, in the order of the commands. Each has a status.
func (r *Results) Answers() []map[string]any {
	answers := make([]map[string]any, len(r.requests))
	for i, request := range r.requests {
		answers[i] = request.answer
	}
	return answers
}

// addRuns stores the report in JSON of the subcommand run.
func (r *Results) addRuns(report []byte) error {
	var all []struct {
		Guard, Strategy string
		Verdict         string     // of a load
		Broken          []api.Text // of a scenario
		Sentence        api.Text
	}
	var raw []map[string]any
	if err := errors.Join(json.Unmarshal(report, &all), json.Unmarshal(report, &raw)); err != nil {
		return fmt.Errorf("the report of run: %w", err)
	}
	for i, result := range all {
		if result.Guard != "" {
			r.byGuard[result.Guard] = raw[i]
			if result.Verdict = "holds"; len(result.Broken) > 0 {
				result.Verdict = "broken"
			}
		} else {
			r.byName[result.Strategy] = raw[i]
		}
		r.Verdicts = append(r.Verdicts, Sentence{Text: result.Sentence, Class: result.Verdict})
	}
	if len(r.byName) == 0 {
		return nil
	}
	return json.Unmarshal(report, &r.Runs)
}

// addExperiments stores the results that break has kept in a folder.
func (r *Results) addExperiments(folder string) error {
	store, err := experiment.OpenStore(folder)
	if err != nil {
		return err
	}
	all := store.Results()
	for i, e := range all {
		r.verdicts[e.Strategy] = string(e.Verdict)
		text := api.Textf("%[1]s, %[2]s: %[3]s. %[5]s", "%[1]s，%[2]s：%[4]s。%[6]s", e.Name(), e.Hazard, e.Verdict, e.Verdict.In("zh"), e.Why.EN, e.Why.ZH)
		r.Verdicts = append(r.Verdicts, Sentence{text, map[string]string{api.Safe.Sign(): "holds", api.Broken.Sign(): "broken"}[e.Verdict.Sign()], &all[i]})
	}
	return nil
}

// Merge adds the results of later commands. Figures in the text may refer to earlier ones.
func (r *Results) Merge(later *Results) {
	maps.Copy(r.byName, later.byName)
	maps.Copy(r.byGuard, later.byGuard)
	maps.Copy(r.verdicts, later.verdicts)
	r.text = later.text
	if len(later.requests) > 0 {
		r.requests = later.requests
	}
}

// Cards are the cards of the strategies, as GET /strategies returns them, by id.
type Cards map[string]map[string]any

// ReadCards gets the cards from a lab.
func ReadCards(ctx context.Context, lab api.Client) (Cards, error) {
	var all []map[string]any
	if err := lab.Call(ctx, http.MethodGet, "/strategies", nil, &all); err != nil {
		return nil, err
	}
	cards := Cards{}
	for _, card := range all {
		id, _ := card["id"].(string)
		cards[id] = card
	}
	return cards, nil
}

func (r *Results) names(cards Cards) map[string]any {
	return map[string]any{
		"text": r.text, "answers": r.Answers(), "run": r.byName, "guard": r.byGuard, "verdict": r.verdicts, "card": cards,
	}
}

// Inconclusive is the error of results that do not say which option is right, such as those of a server that is down.
type Inconclusive struct{ api.Text }

func (i Inconclusive) Error() string { return i.EN }

// inconclusive returns nil, or why a condition that is true says nothing.
func (r *Results) inconclusive() error {
	for _, run := range r.Runs {
		if run.Verdict == api.Inconclusive {
			return Inconclusive{run.Sentence}
		}
	}
	for _, v := range r.Verdicts {
		if v.Experiment != nil && v.Experiment.Verdict == api.Inconclusive {
			return Inconclusive{v.Text}
		}
	}
	for _, answer := range r.Answers() {
		if answer["outcome"] == string(api.Unavailable) {
			return Inconclusive{api.Verbatim(fmt.Sprint(answer["detail"]))}
		}
	}
	return nil
}

// Right returns the number of the option whose condition is true, from 1. It returns an error unless
// the condition of exactly one option is true, and Inconclusive if the results prove nothing.
func (r *Results) Right(options []Option, cards Cards) (right int, err error) {
	if err := r.inconclusive(); err != nil && len(options) > 0 {
		return 0, err
	}
	for i, o := range options {
		is, err := evaluate(o.Condition, r.names(cards))
		if err != nil {
			return 0, err
		}
		isRight, ok := is.(bool)
		if !ok {
			return 0, fmt.Errorf("%s is %v, neither true nor false", o.Condition, is)
		}
		if !isRight {
			continue
		}
		if right > 0 {
			return 0, fmt.Errorf("two options are right: %q and %q", options[right-1].Text, o.Text)
		}
		right = i + 1
	}
	if right == 0 && len(options) > 0 {
		return 0, errors.New("no option is right")
	}
	return right, nil
}

// evaluate returns the value of an expression: https://expr-lang.org.
func evaluate(expression string, names map[string]any) (any, error) {
	program, err := expr.Compile(expression, expr.Env(names))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	value, err := expr.Run(program, names)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	return value, nil
}

// Figures returns a lesson's text with the figures of these results in place of the old ones. A figure that they
// do not have stays, and the error says which.
func (r *Results) Figures(text string, cards Cards) (_ string, err error) {
	text = figure.ReplaceAllStringFunc(text, func(old string) string {
		expression := figure.FindStringSubmatch(old)[1]
		value, failed := evaluate(expression, r.names(cards))
		shown := ""
		if failed == nil {
			shown, failed = readable(value)
		}
		if failed != nil {
			err = cmp.Or(err, failed)
			return old
		}
		return "<!-- = " + expression + " -->" + shown + "<!-- / -->"
	})
	return text, err
}

// readable prints a figure with three digits that matter.
func readable(value any) (string, error) {
	switch v := value.(type) {
	case float64:
		if v >= 100 || v == float64(int(v)) {
			return strconv.FormatFloat(v, 'f', 0, 64), nil
		}
		return strconv.FormatFloat(v, 'g', 2, 64), nil
	case int:
		return strconv.Itoa(v), nil
	case string:
		return v, nil
	}
	return "", fmt.Errorf("the value %v is no figure", value)
}
