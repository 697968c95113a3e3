package rig

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed conf
var confFiles embed.FS

// conf writes a configuration file of the server, from the template of its name in the folder conf. It
// returns the path of the file, which only the lab's owner can read.
func (s *Server) conf(name string, values any) string {
	var text strings.Builder
	t, err := template.New(name).Option("missingkey=error").ParseFS(confFiles, "conf/"+name)
	if err == nil {
		err = t.Execute(&text, values)
	}
	if err != nil {
		s.rig.check(fmt.Errorf("rig: %w", err))
	}
	return s.write(name, text.String())
}
