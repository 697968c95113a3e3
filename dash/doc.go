// Package dash serves the lab's pages, on which a browser compares, breaks and steps through
// locks. It can do nothing that the other commands cannot.
//
// Templates render the pages. What changes while a page is open is a part: an element with an
// id. The server renders it and sends it to all pages that show it, on one stream of
// server-sent events for each page. The scripts only replace parts, post forms and draw curves.
//
// Everybody may read. Starting or breaking something requires the lab's token. The printed link
// has it behind its #, so it is in no request and in no log.
package dash
