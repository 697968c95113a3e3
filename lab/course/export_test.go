package course

// Conditions returns the conditions of the options and the expressions of the figures.
func (l Lesson) Conditions() (all []string) {
	for _, t := range l.Questions() {
		for _, o := range t.Options {
			all = append(all, o.Condition)
		}
	}
	for _, found := range figure.FindAllStringSubmatch(l.source, -1) {
		all = append(all, found[1])
	}
	return all
}
