// Package nginx has the load balancer's nginx.conf, which docker-compose.yml uses, too.
package nginx

import _ "embed" // for nginx.conf

//go:embed nginx.conf
var conf string

// Conf returns the text of nginx.conf.
func Conf() string { return conf }
