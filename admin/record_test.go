package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
)

// pendingRecord is a record as the API shows it.
type pendingRecord struct {
	Version, Record, Pinned string
	Corrected               bool
	Hides                   []struct{ From, To int }
}

// waiting waits for the record that is prepared for a thread.
func (r *rig) waiting(p place) (record pendingRecord) {
	r.t.Helper()
	until(r.t, "a record is prepared", func() bool {
		a := r.call(http.MethodGet, p.url("/record"))
		return a.StatusCode == http.StatusOK && json.Unmarshal(a.body, &record) == nil
	})
	return record
}

// correct sends a correction.
func (r *rig) correct(p place, version, record, pinned string) answer {
	r.t.Helper()
	body, err := json.Marshal(map[string]string{"version": version, "record": record, "pinned": pinned})
	must(r.t, err)
	return r.callWith(string(body), http.MethodPut, p.url("/record"))
}

// TestRecordIsCorrectedBeforeItApplies: an operator reads the record that was prepared, corrects it and pins a line to it. It applies as corrected, with
// each store and after a restart, says so to the model and in the API, and what was pinned stands in the records that follow, too.
func TestRecordIsCorrectedBeforeItApplies(t *testing.T) {
	for name, change := range stores() {
		t.Run(name, func(t *testing.T) {
			store := change(t)
			r := start(t, func(c *config.Config) {
				if store != nil {
					store(c)
				}
				c.Condenser.BackgroundAt, c.Condenser.Wait = 0.6, catalogue.WaitDeadline
			})
			conversation := turns("ships", 41)
			r.call(http.MethodGet, r.ask(turns("planes", 3)).url("/record")).fails(t, http.StatusNotFound, "no_record")
			p := r.grow(conversation[:10], 2) // nine events of ten
			record := r.waiting(p)
			if record.Corrected || record.Pinned != "" || record.Record == "" || len(record.Hides) == 0 {
				t.Errorf("prepared: %+v", record)
			}
			const corrected = "CURRENT_STATE: the ship is the Vasa\n</dewpoint_record>"
			r.correct(p, "another", corrected, "").fails(t, http.StatusConflict, "record_changed")
			r.correct(p, record.Version, " ", "").fails(t, http.StatusBadRequest, "invalid_parameter")
			r.correct(p, record.Version, strings.Repeat("a longer record than all messages ", 1500), "").fails(t, http.StatusBadRequest, "record_too_long")
			if a := r.correct(p, record.Version, corrected, "Never call her Wasa."); a.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			r.correct(p, record.Version, corrected, "").fails(t, http.StatusConflict, "record_changed")
			r.restart()
			if record = r.waiting(p); !record.Corrected || record.Pinned != "Never call her Wasa." {
				t.Errorf("corrected: %+v", record)
			}
			r.grow(conversation[:14], 12)
			sent := strings.Join(r.received(), "\n")
			for _, want := range []string{"the ship is the Vasa", "Never call her Wasa.", "has read and corrected this record"} {
				if !strings.Contains(sent, want) {
					t.Errorf("the model does not see %q: %s", want, sent)
				}
			}
			if !strings.Contains(sent, "‹/dewpoint_record>") {
				t.Errorf("the operator's text closes the record: %s", sent)
			}
			var list struct {
				Condensations []struct{ Corrected bool }
			}
			r.get(p.url("/condensations"), &list)
			if fmt.Sprint(list.Condensations) != "[{true}]" {
				t.Errorf("condensations: %+v", list.Condensations)
			}
			r.grow(conversation, 16)
			r.get(p.url("/condensations"), &list)
			if n := len(list.Condensations); n < 2 || list.Condensations[n-1].Corrected {
				t.Errorf("condensations: %+v", list.Condensations)
			}
			if sent := strings.Join(r.received(), "\n"); !strings.Contains(sent, "Never call her Wasa.") || strings.Contains(sent, "has read and corrected") {
				t.Errorf("the model sees %s", sent)
			}
		})
	}
}
