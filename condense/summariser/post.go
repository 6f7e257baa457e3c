package summariser

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// errEnded says that a stream ended without its last event.
var errEnded = fmt.Errorf("%w: its last event is missing", errBroken)

// refused is an error that a server told. Status is 0 within an answer.
type refused struct {
	status     int
	kind, said string
}

func (e *refused) Error() string { return fmt.Sprintf("the server answered %d", e.status) }

// bodyOf is a request's own body, or the one that is made for it.
func bodyOf(r condense.Request, made func() any) ([]byte, error) {
	if r.Body != nil {
		return r.Body, nil
	}
	return json.Marshal(made()) //nolint:wrapcheck // callError words it
}

// post asks for an answer in a stream, and hands the data of each event to take until that reports the last one. An answer that is no
// stream goes to whole.
func (w *wire) post(ctx context.Context, body []byte, whole func([]byte) error, take func(data []byte) (ended bool, err error)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to.BaseURL, bytes.NewReader(body))
	if err != nil {
		return err //nolint:wrapcheck // callError words it
	}
	req.Header.Set("Content-Type", "application/json")
	if w.to.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+w.to.APIKey)
	}
	resp, err := w.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode != http.StatusOK:
		return refusedWith(resp)
	case w.whole != nil:
		return whole(w.whole)
	}
	return readEvents(resp.Body, take)
}

func refusedWith(resp *http.Response) error {
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return err //nolint:wrapcheck // callError words it
	}
	var m struct {
		Error struct{ Type, Code string }
	}
	_ = json.Unmarshal(said, &m) // what is none has no code
	return &refused{resp.StatusCode, cmp.Or(m.Error.Code, m.Error.Type), string(said)}
}

func readEvents(from io.Reader, take func(data []byte) (ended bool, err error)) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if ended, err := take(data); ended || err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return errEnded
		case err != nil:
			return err //nolint:wrapcheck // callError words it
		}
	}
}
