package admin_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestExplainRefuses(t *testing.T) {
	r := start(t, nil)
	for body, param := range map[string]string{
		``:                              "body",
		`{}`:                            "body",
		`{"body":{},"more":1}`:          "body",
		`{"tenant":"nobody","body":{}}`: "tenant",
		`{"dialect":"sms","body":{}}`:   "dialect",
		`{"body":{"messages":7}}`:       "body",
	} {
		a := r.callWith(body, http.MethodPost, "/api/v1/explain")
		a.fails(t, http.StatusBadRequest, "invalid_parameter")
		var e struct{ Error struct{ Param string } }
		must(t, json.Unmarshal(a.body, &e))
		if e.Error.Param != param {
			t.Errorf("%s: about %q, want %q", body, e.Error.Param, param)
		}
	}
	if n := r.logs.FilterMessage("admin change").Len(); n > 0 {
		t.Errorf("%d questions were reported as changes", n)
	}
}
