package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"oversell/lab/exercise"
	"oversell/lab/experiment"
	"oversell/locks/catalog"
)

// offer completes a command line with the names that may follow args.
func offer(names func(args []string) []cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return names(args), cobra.ShellCompDirectiveNoFileComp
	}
}

// offerStrategies offers at most this number of strategies; 0 means all.
func offerStrategies(most int) cobra.CompletionFunc {
	return offer(func(args []string) []cobra.Completion {
		if most > 0 && len(args) >= most {
			return nil
		}
		return strategiesBut(args)
	})
}

func strategiesBut(named []string) (all []cobra.Completion) {
	for _, card := range catalog.Cards() {
		if !slices.Contains(named, card.ID) {
			all = append(all, cobra.CompletionWithDesc(card.ID, card.Title.In(language())))
		}
	}
	return all
}

// offerHazards offers a hazard, and then strategies; after --all only strategies.
func offerHazards(all *bool) cobra.CompletionFunc {
	return offer(func(args []string) (names []cobra.Completion) {
		switch {
		case *all:
			return strategiesBut(args)
		case len(args) > 0:
			return strategiesBut(args[1:])
		}
		for _, e := range experiment.All() {
			names = append(names, cobra.CompletionWithDesc(string(e.Hazard), e.Title.In(language())))
		}
		return names
	})
}

func offerExercises() cobra.CompletionFunc {
	return offer(func(args []string) (names []cobra.Completion) {
		all, err := exercise.All()
		if err != nil || len(args) > 0 {
			return nil
		}
		for _, e := range all {
			names = append(names, cobra.CompletionWithDesc(e.Name, e.Title.In(language())))
		}
		return names
	})
}
