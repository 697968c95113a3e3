// Package dash is the lab's page: run, watch, compare, break and step through locks in a
// browser. It shows what the other commands do, and does nothing that they can't.
//
// Pages are templates, filled here. What changes on them while they are open is a part of
// a page, an element with an id: it is rendered here as well, and pushed to every page
// that shows it (package-internal hub, one server-sent stream for each page). So the
// browser's own script only puts parts in their places, posts forms and draws the curves.
//
// Anybody may look. Whoever starts or breaks something needs the lab's token, which the
// printed link carries behind its #, where no server and no log sees it.
package dash
