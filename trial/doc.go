// Package trial puts a lock on trial: a program in any language that offers a lock as an adapter
// (package trial/adapter). A Judge checks the contract of the lock, injects the hazards that apply to
// it, and sends it a load. A Report has what it found, and writes it as a document, JSON or a page.
//
// The class's laboratory judges the strategies of this repository. A trial serves the author of
// another lock: it needs the service's packages and the lab's, so neither of them imports it.
package trial
