// Package dash serves the lab's pages, on which a user compares, breaks and steps through locks.
// Each function of the pages, except the primitives, is also available as a command.
//
// Templates render the pages. A part is an element with an id, which may change while its page is
// open. The server renders each part and sends it to all pages that show it. Each page has one
// stream of server-sent events. The scripts only replace parts, post forms and draw curves.
//
// Everybody may read the pages. To start or to break something requires the lab's token. The
// printed link has the token behind its #, so no request and no log contains the token.
package dash
