// Package nginx has the configuration of the load balancer. docker-compose.yml mounts the same
// file.
package nginx

import _ "embed" // for nginx.conf

//go:embed nginx.conf
var conf string

// Conf returns the text of nginx.conf.
func Conf() string { return conf }
