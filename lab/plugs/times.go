package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
)

// compareTimes plays the longest run through the proxy, straight to upstream, and through the plug, one request after the other, and prints what
// each adds at the median.
func compareTimes(ctx context.Context, binary string, files []string, out io.Writer) error {
	work, err := os.MkdirTemp("", "dewpoint-plugs-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	up := startUpstream()
	up.blind = true
	defer up.Close()
	run, err := longest(files)
	if err != nil {
		return err
	}
	proxy, proxyURL, err := serve(ctx, binary, filepath.Join(work, "proxy"), up.URL)
	if err != nil {
		return err
	}
	defer proxy.Kill()
	plugged, plugURL, err := serve(ctx, binary, filepath.Join(work, "plug"), up.URL)
	if err != nil {
		return err
	}
	defer plugged.Kill()
	var direct, through, asked []time.Duration
	var bytes int
	for _, step := range run.Calls() {
		up.expect(chatProtocol.says(step.Answer))
		body := chatProtocol.body(&run, step.Messages)
		bytes += len(body)
		ask, err := json.Marshal(map[string]any{
			"input_type": "request", "structured_messages": step.Messages, "model": modelName, "request_headers": map[string]string{},
			"request_data": map[string]any{}, "texts": []string{},
		})
		if err != nil {
			return err
		}
		for _, call := range []struct {
			url  string
			body []byte
			took *[]time.Duration
		}{
			{up.URL + "/v1/chat/completions", body, &direct}, {proxyURL + "/v1/chat/completions", body, &through}, {plugURL + plug.LiteLLMPath, ask, &asked},
		} {
			begun := time.Now()
			if _, err := post(call.url, call.body, http.Header{}); err != nil {
				return err
			}
			*call.took = append(*call.took, time.Since(begun))
		}
	}
	added := median(through) - median(direct)
	fmt.Fprintf(out, "plugs: %d steps, %d KB each on average: straight %.2f ms, through the proxy %.2f ms (adds %.2f), the plug %.2f ms: %.2f times what the proxy adds\n",
		len(direct), bytes/len(direct)/1000, ms(median(direct)), ms(median(through)), ms(added), ms(median(asked)), float64(median(asked))/float64(added))
	return nil
}

func longest(files []string) (run replay.Run, err error) {
	for _, file := range files {
		r, err := readRun(file, chatProtocol)
		if err != nil {
			return run, err
		}
		if len(r.Messages) > len(run.Messages) {
			run = r
		}
	}
	return run, nil
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
