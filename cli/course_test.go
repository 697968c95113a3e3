package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"oversell/docs"
	"oversell/handlers"
	"oversell/lab/course"
	"oversell/lab/exercise"
	"oversell/lab/experiment"
	"oversell/lab/scenario"
	"oversell/locks/catalog"
)

// TestCourseNames checks that the strategies, hazards, flags and routes that the lessons name exist.
func TestCourseNames(t *testing.T) {
	t.Parallel()
	names, checked := courseNames(t), map[string]bool{}
	check := func(where string, c course.Command) {
		if checked[c.Text] {
			return // also in another language or lesson
		}
		checked[c.Text] = true
		if err := names.checkCommand(c); err != nil {
			t.Errorf("%s: %s: %v", where, c.Text, err)
		}
	}
	for _, lang := range course.Languages() {
		lessons, err := course.Lessons(docs.Course, lang)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lessons {
			file := course.File(l.Name, lang)
			for _, question := range l.Questions() {
				for _, c := range question.Commands {
					check(file, c)
				}
			}
			text, err := fs.ReadFile(docs.Course, file)
			if err != nil {
				t.Fatal(err)
			}
			for _, expression := range regexp.MustCompile(`<!-- (?:if|=) .*? -->`).FindAllString(string(text), -1) {
				for _, found := range regexp.MustCompile(`(?:run|verdict|card)\["([^" ]+)`).FindAllStringSubmatch(expression, -1) {
					if !slices.Contains(names.strategies, found[1]) {
						t.Errorf("%s: %s: strategy %q does not exist", file, expression, found[1])
					}
				}
			}
			for _, found := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
				if err := names.checkSpan(found[1]); err != nil {
					t.Errorf("%s: `%s`: %v", file, found[1], err)
				}
			}
		}
	}
	sections, err := fs.ReadFile(docs.Course, course.File("sections", "en"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(sections), "\n|--")
	for _, found := range regexp.MustCompile("`((?:bin/oversell|curl) [^`]+)`").FindAllStringSubmatch(table, -1) {
		c, err := course.ParseCommand(found[1])
		if err != nil {
			t.Fatal(err)
		}
		check("sections.md", c)
	}
}

// TestCourseNamesFinds checks that a wrong name of each kind is reported.
func TestCourseNamesFinds(t *testing.T) {
	t.Parallel()
	names := courseNames(t)
	for _, wrong := range []string{"redis-lau", "--clinets", "/test/lokc", "db-row-x"} {
		if names.checkSpan(wrong) == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
	for _, right := range []string{"redis-lua", "replica-race", "--clients", "/test/read", "SELECT", "count", "a-b"} {
		if err := names.checkSpan(right); err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
	for _, wrong := range [][]string{{"run", "rediss"}, {"break", "pasue", "redis"}, {"run", "redis", "--hodl", "1s"}, {"rum"}, {"exercise", "isolatoin"}, {"run", "coupon", "--guard", "x"}, {"break", "herd", "none"}} {
		if names.checkCommand(course.Command{Args: wrong}) == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

type nameList struct {
	strategies, hazards, exercises, ids, flags, routes []string
}

func courseNames(t *testing.T) (n nameList) {
	t.Helper()
	for _, c := range catalog.Cards() {
		n.strategies = append(n.strategies, c.ID)
	}
	for _, e := range experiment.All() {
		n.hazards = append(n.hazards, string(e.Hazard))
	}
	exercises, err := exercise.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exercises {
		n.exercises = append(n.exercises, e.Name)
	}
	n.ids = slices.Concat(n.strategies, n.hazards, n.exercises)
	for _, s := range scenario.All() {
		for _, g := range s.Guards {
			n.ids = append(n.ids, g.ID)
		}
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		n.ids = append(n.ids, c.Name())
		n.flags = append(n.flags, regexp.MustCompile(`--[a-z-]+`).FindAllString(c.LocalFlags().FlagUsages(), -1)...)
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(rootCommand("oversell"))
	for _, r := range handlers.New(handlers.Config{}).Routes() {
		n.routes = append(n.routes, r.Path)
	}
	return n
}

func (n nameList) checkCommand(c course.Command) error {
	if c.URL != nil {
		if !slices.ContainsFunc(n.routes, func(route string) bool { return sameRoute(route, c.URL.Path) }) {
			return fmt.Errorf("route %s does not exist", c.URL.Path)
		}
		if id := c.URL.Query().Get("strategy"); id != "" && !slices.Contains(n.strategies, id) {
			return fmt.Errorf("strategy %q does not exist", id)
		}
		return nil
	}
	if len(c.Args) == 0 {
		return nil
	}
	cmd, args, err := rootCommand("oversell").Find(c.Args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(args); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	guards, _ := cmd.Flags().GetStringSlice("guard") // only scenarios have guards
	for _, guard := range guards {
		if !slices.Contains(n.ids, guard) {
			return fmt.Errorf("guard %q does not exist", guard)
		}
	}
	var of []string
	if cmd.Name() == "break" && len(cmd.Flags().Args()) > 1 {
		if err := applies(cmd.Flags().Args()[0], cmd.Flags().Args()[1:]); err != nil {
			return err
		}
	}
	for i, arg := range cmd.Flags().Args() {
		switch {
		case cmd.Name() == "break" && i == 0:
			of = n.hazards
		case cmd.Name() == "exercise":
			of = n.exercises
		case slices.Contains([]string{"break", "run", "step", "strategies"}, cmd.Name()):
			of = n.strategies
		default:
			continue
		}
		if !slices.Contains(of, arg) {
			return fmt.Errorf("%q does not exist", arg)
		}
	}
	return nil
}

// applies returns an error if the hazard does not apply to one of the strategies.
func applies(hazard string, strategies []string) error {
	for _, e := range experiment.All() {
		for _, card := range catalog.Cards() {
			if string(e.Hazard) == hazard && slices.Contains(strategies, card.ID) && !e.AppliesTo(card) {
				return fmt.Errorf("the hazard %s does not apply to %s", hazard, card.ID)
			}
		}
	}
	return nil
}

// checkSpan checks a name in the text of a lesson. A name with the first word of a strategy's family
// must be the name of something here.
func (n nameList) checkSpan(text string) error {
	family := regexp.MustCompile(`^(redis|zk|db-row|version|cohort|for-update|share|mutex)-[a-z-]+$`)
	switch {
	case family.MatchString(text) && !slices.Contains(n.ids, text):
		return errors.New("nothing has this name")
	case strings.HasPrefix(text, "--") && !slices.Contains(n.flags, strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '=' })[0]):
		return errors.New("no command has this flag")
	case regexp.MustCompile(`^/(check|test|stock|strategies|coupons|orders|shows|goods|events)\b`).MatchString(text):
		path, _, _ := strings.Cut(text, "?")
		if !slices.ContainsFunc(n.routes, func(route string) bool { return sameRoute(route, path) }) {
			return errors.New("no such route")
		}
	}
	return nil
}

// sameRoute reports whether a path belongs to a route of Gin, such as /stock/:id.
func sameRoute(route, path string) bool {
	have, want := strings.Split(route, "/"), strings.Split(strings.TrimSuffix(path, "…"), "/")
	return len(have) == len(want) && !slices.ContainsFunc(have, func(part string) bool {
		return !strings.HasPrefix(part, ":") && !slices.Contains(want, part)
	})
}
