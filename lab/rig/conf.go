package rig

import (
	"embed"
	"fmt"
	"os"
	"strings"
	"text/template"
)

//go:embed conf
var confFiles embed.FS

// conf writes a configuration file of the server, from the template of its name in the folder conf. It
// returns the path of the file, which only the lab's owner can read.
func (s *Server) conf(name string, values any) string {
	return s.write(name, s.rig.render(name, values))
}

// script writes a script, which the server runs.
func (s *Server) script(name string) string {
	path := s.conf(name, nil)
	s.rig.check(os.Chmod(path, 0o700)) //nolint:gosec // a script
	return path
}

func (r *Rig) render(name string, values any) string {
	var text strings.Builder
	t, err := template.New(name).Option("missingkey=error").ParseFS(confFiles, "conf/"+name)
	if err == nil {
		err = t.Execute(&text, values)
	}
	if err != nil {
		r.check(fmt.Errorf("rig: %w", err))
	}
	return text.String()
}
