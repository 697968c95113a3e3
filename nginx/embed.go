// Package nginx has the configuration of the load balancer, nginx.conf. docker-compose.yml uses the
// same file.
package nginx

import _ "embed" // for nginx.conf

//go:embed nginx.conf
var conf string

// Conf returns the text of nginx.conf.
func Conf() string { return conf }
