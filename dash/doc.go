// Package dash serves the lab's pages, on which a browser compares, breaks and steps through
// locks. The pages can do nothing that the other commands cannot.
//
// Templates render the pages. A part is an element with an id that may change while its page is
// open. The server renders each part and sends it to all pages that show it, on one stream of
// server-sent events for each page. The scripts only replace parts, post forms and draw curves.
//
// Everybody may read. Starting or breaking something requires the lab's token. The printed link
// has the token behind its #, so the token is in no request and in no log.
package dash
