package main

import (
	"strings"
	"testing"
)

// TestStoreSizeTable: the table has a line for each kind of key, the largest first, and counts the messages of each run's last request.
func TestStoreSizeTable(t *testing.T) {
	s := storeSize{runs: smallChats(2)}
	for i := range s.runs {
		s.count(&s.runs[i])
	}
	if s.messages != 20 {
		t.Errorf("%d messages in two chats, want 20: the answer to the last request is not in a history", s.messages)
	}
	var out strings.Builder
	if err := s.tabulate(&out, map[string]kindSize{"places": {10, 500}, logKind: {2, 2000}}, 3000); err != nil {
		t.Fatal(err)
	}
	logs, places := strings.Index(out.String(), "logs  "), strings.Index(out.String(), "places  ")
	if logs < 0 || places < logs || !strings.Contains(out.String(), "all else: 25 bytes and 0.500 keys a message") {
		t.Errorf("got:\n%s", &out)
	}
}

// TestSmallChatsAreRuns: each chat can be played.
func TestSmallChatsAreRuns(t *testing.T) {
	for _, run := range smallChats(3) {
		if run.Steps() != 5 {
			t.Errorf("%s has %d steps, want 5", run.Name, run.Steps())
		}
	}
}
