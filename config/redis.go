package config

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// Redis is a standalone server, a Sentinel group (if MasterName is set) or a Cluster. It is used if Store.Type is StoreRedis. URL replaces Addrs,
// Username, Password, DB and TLS: see Redis.Endpoint.
type Redis struct {
	URL      Secret   `yaml:"url"` // redis://user:password@host:port/db, or rediss:// for TLS
	Addrs    []string `yaml:"addrs"`
	Username string   `yaml:"username"`
	Password Secret   `yaml:"password"`
	DB       int      `yaml:"db"`

	TLS           bool   `yaml:"tls"`
	TLSCA         string `yaml:"tls_ca"`          // PEM file; empty: the system's authorities
	TLSCert       string `yaml:"tls_cert"`        // PEM file of the client's certificate; empty: none
	TLSKey        string `yaml:"tls_key"`         // PEM file of its key
	TLSServerName string `yaml:"tls_server_name"` // expected in the server's certificate; empty: the host of its address

	MasterName       string `yaml:"master_name"`
	SentinelUsername string `yaml:"sentinel_username"`
	SentinelPassword Secret `yaml:"sentinel_password"`
	Cluster          bool   `yaml:"cluster"`
}

const redisPort = "6379"

// Endpoint returns r with its URL parsed into the other fields. The error contains no part of the URL.
func (r Redis) Endpoint() (Redis, error) {
	if r.URL == "" {
		return r, nil
	}
	u, err := url.Parse(r.URL.Reveal())
	switch {
	case err != nil:
		return r, errors.New("is not a URL: write it as redis://user:password@host:6379/0")
	case u.Scheme != "redis" && u.Scheme != "rediss":
		return r, errors.New("does not begin with redis:// or rediss://: write it as redis://user:password@host:6379/0")
	case u.Hostname() == "":
		return r, errors.New("has no host: write it as redis://user:password@host:6379/0")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return r, errors.New("contains a query or fragment: end it with the number of the database")
	}
	port := cmp.Or(u.Port(), redisPort)
	if !validPort(port) {
		return r, errors.New("has no port between 1 and 65535: correct it, or leave it out")
	}
	db, err := strconv.ParseUint(cmp.Or(strings.TrimPrefix(u.Path, "/"), "0"), 10, 31)
	if err != nil {
		return r, errors.New("does not end with the number of a database: write it as redis://host:6379/0")
	}
	password, _ := u.User.Password()
	r.Addrs, r.TLS, r.URL = []string{net.JoinHostPort(u.Hostname(), port)}, u.Scheme == "rediss", ""
	r.Username, r.Password, r.DB = u.User.Username(), Secret(password), int(db)
	return r, nil
}

// redis accepts a URL that Effective has redacted.
func (v *validator) redis(r Redis) {
	if r.URL == Redacted {
		return
	}
	v.redisURL(r)
	end, err := r.Endpoint()
	if err != nil {
		v.add("store.redis.url", "%s", err.Error())
		return
	}
	v.redisAddrs(end)
	v.when(end.Cluster && end.MasterName != "",
		"store.redis.master_name", "is set together with cluster: remove one of them, since a Cluster has no Sentinel")
	db := "store.redis.db"
	if r.URL != "" {
		db = "store.redis.url"
	}
	v.when(end.Cluster && end.DB != 0, db, "selects a database together with cluster: remove its number, since a Cluster has only database 0")
	v.when(end.DB < 0, "store.redis.db", "is negative: write the number of the database")
	v.redisTLS(end)
	without := end.Username != "" && end.Password == ""
	v.when(without && r.URL != "", "store.redis.url", "has a user name without a password: write it as redis://user:password@host:6379/0")
	v.when(without && r.URL == "", "store.redis.password", "is missing while username is set: set it, or remove username")
	v.when(end.SentinelUsername != "" && end.SentinelPassword == "",
		"store.redis.sentinel_password", "is missing while sentinel_username is set: set it, or remove sentinel_username")
	v.when(end.MasterName == "" && (end.SentinelUsername != "" || end.SentinelPassword != ""),
		"store.redis.master_name", "is missing while sentinel_username or sentinel_password is set: name the master, or remove them")
}

// redisURL refuses keys whose settings the URL includes. The default address is allowed, since it was not configured.
func (v *validator) redisURL(r Redis) {
	if r.URL == "" {
		return
	}
	given := Redis{Addrs: r.Addrs, Username: r.Username, Password: r.Password, DB: r.DB, TLS: r.TLS}
	if slices.Equal(r.Addrs, Default().Store.Redis.Addrs) {
		given.Addrs = nil
	}
	twice := setKeys(given)
	v.when(len(twice) > 0,
		"store.redis.url", "is set together with %s: remove one or the other, since the URL includes them all", strings.Join(twice, ", "))
}

func (v *validator) redisAddrs(r Redis) {
	v.when(len(r.Addrs) == 0, "store.redis.addrs", "is empty: name at least one server as host:port")
	v.when(len(r.Addrs) > 1 && !r.Cluster && r.MasterName == "",
		"store.redis.addrs", "names several servers: set cluster or master_name, or keep one")
	for i, addr := range r.Addrs {
		key := syntax.Index("store.redis.addrs", i)
		if host, _, ok := v.address(key, addr, redisPort); ok && host == "" {
			v.add(key, "has no host: write it as host:port")
		}
	}
}

func (v *validator) redisTLS(r Redis) {
	for _, file := range []struct{ name, value string }{
		{"tls_ca", r.TLSCA}, {"tls_cert", r.TLSCert}, {"tls_key", r.TLSKey}, {"tls_server_name", r.TLSServerName},
	} {
		v.when(file.value != "" && !r.TLS, "store.redis."+file.name, "is set without tls: set tls to true, or remove it")
	}
	v.when(r.TLSCert == "" && r.TLSKey != "", "store.redis.tls_cert", "is missing while tls_key is set: name both files, or neither")
	v.when(r.TLSKey == "" && r.TLSCert != "", "store.redis.tls_key", "is missing while tls_cert is set: name both files, or neither")
}
