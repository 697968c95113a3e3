// Package nginx holds the balancer's configuration, the file that docker-compose.yml
// mounts, so that the lab on one machine runs the same one.
package nginx

import _ "embed" // for nginx.conf

//go:embed nginx.conf
var conf string

// Conf is the text of nginx.conf.
func Conf() string { return conf }
