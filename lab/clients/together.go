package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// together runs clients at the same time through one process, and judges each by itself. Every client must have a protocol of its own: by that
// its upstream is found.
func (t trial) together(ctx context.Context, clients []client) ([]report, error) {
	work, err := os.MkdirTemp("", "dewpoint-clients-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	reports, providers := make([]report, len(clients)), map[string]*provider{}
	for i, c := range clients {
		reports[i].client = c
		if providers[c.Protocol] != nil {
			return nil, fmt.Errorf("two clients have the protocol %s: name one of each", c.Protocol)
		}
		p, err := c.provide()
		if err != nil {
			return nil, err
		}
		defer p.close()
		providers[c.Protocol] = p
	}
	if providers["chat"] == nil {
		return nil, errors.New("no client has the protocol chat: name one")
	}
	router, err := startTap(func(*tap) http.Handler { return route(providers) })
	if err != nil {
		return nil, err
	}
	defer router.close()
	proxy, at, err := t.serve(ctx, work, router.URL)
	if err != nil {
		return nil, err
	}
	defer proxy.Kill()
	seen := make([][]*exchange, len(clients))
	var working sync.WaitGroup
	for i := range reports {
		working.Go(func() { seen[i] = t.atOnce(ctx, &reports[i], at) })
	}
	working.Wait()
	err = servers.Stop(proxy)
	for i := range reports {
		if r := &reports[i]; r.missing == "" {
			r.judge(providers[r.client.Protocol].evidence(seen[i]))
		}
	}
	if word := proxy.Log.Defect(); word != "" {
		err = errors.Join(err, errors.New("Dewpoint's log has "+word))
	}
	return reports, err
}

// atOnce installs a client and runs it before a Dewpoint that others use, too.
func (t trial) atOnce(ctx context.Context, r *report, dewpoint string) (seen []*exchange) {
	folder, programs, err := t.installer.install(ctx, r.client)
	if absent, ok := errors.AsType[missing](err); ok {
		r.missing = absent.Error()
		return nil
	}
	var work string
	if err == nil {
		work, err = os.MkdirTemp("", "dewpoint-clients-")
		defer func() { _ = os.RemoveAll(work) }()
	}
	if err == nil {
		seen, err = t.attend(ctx, r, place{work: work, install: folder, programs: programs, url: dewpoint})
	}
	if err != nil {
		r.problem("%v", err)
	}
	return seen
}

// route sends each request to the upstream of its protocol. What belongs to no protocol goes to that of Chat Completions.
func route(providers map[string]*provider) http.Handler {
	return &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to := providers["chat"]
			for path, protocol := range map[string]string{messages.Path: "messages", responses.Path: "responses", ":": "gemini"} {
				if p := providers[protocol]; p != nil && strings.Contains(r.In.URL.Path, path) {
					to = p
				}
			}
			if to, err := url.Parse(to.far.URL); err == nil {
				r.SetURL(to)
			}
		},
	}
}
