package runs_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/runs"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

func newControl(t *testing.T) (*runs.Registry, *runs.Control) {
	t.Helper()
	registry := runs.NewRegistry()
	control, err := runs.NewControl(registry, func() runs.Service { return runs.Service{Listen: "127.0.0.1:1", Version: "1"} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close() })
	return registry, control
}

func TestARunLastsAsLongAsItsConnection(t *testing.T) {
	registry, control := newControl(t)
	lease, err := runs.Join(t.Context(), control.Address(), runs.Wish{Observe: true})
	if err != nil {
		t.Fatal(err)
	}
	run, known := registry.Find(lease.ID)
	if !known || !run.Observe || lease.Version != "1" || lease.Base() != "http://127.0.0.1:1/run/"+lease.ID || registry.Close() {
		t.Errorf("begun: %+v, %v", lease, known)
	}
	inherited, err := lease.File()
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	lease.End() // a child that has the connection still does not keep it
	<-registry.Idle()
	if _, known := registry.Find(lease.ID); known || !registry.Close() {
		t.Error("it has not ended")
	}
	if _, err := runs.Join(t.Context(), control.Address(), runs.Wish{}); !errors.Is(err, runs.ErrNobody) {
		t.Errorf("a run in a process that is stopping: %v", err)
	}
}

// An agent has the connection of its run, and may write to whatever it has.
func TestARunEndsWhateverWasWrittenToItsConnection(t *testing.T) {
	registry, control := newControl(t)
	lease, err := runs.Join(t.Context(), control.Address(), runs.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := lease.File()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inherited.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	_ = inherited.Close()
	lease.End()
	<-registry.Idle()
}

func TestARunIsLostWithTheProcessThatServesIt(t *testing.T) {
	registry, control := newControl(t)
	lease, err := runs.Join(t.Context(), control.Address(), runs.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.End()
	select {
	case <-lease.Lost():
		t.Fatal("it is lost already")
	default:
	}
	_ = control.Close()
	<-lease.Lost()
	<-registry.Idle()
}

// Both sides prove that they know the secret: a process that has taken over the address of another one gets no agent, and nobody begins runs who
// cannot read the secret.
func TestRunsAreBegunOnlyWithTheSecret(t *testing.T) {
	registry, control := newControl(t)
	wrong := control.Address()
	wrong.Secret = "guessed"
	if _, err := runs.Join(t.Context(), wrong, runs.Wish{}); !errors.Is(err, runs.ErrNobody) {
		t.Errorf("with a wrong secret: %v", err)
	}
	if !registry.Close() {
		t.Error("a run has begun")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	imposter := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Dewpoint-Proof", r.Header.Get("X-Dewpoint-Proof"))
		_, _ = w.Write([]byte(`{"id":"x","listen":"127.0.0.1:1"}` + "\n"))
	})}
	go func() { _ = imposter.Serve(listener) }()
	defer imposter.Close()
	if _, err := runs.Join(t.Context(), runs.Address{Listen: listener.Addr().String(), Secret: "s"}, runs.Wish{}); !errors.Is(err, runs.ErrNobody) {
		t.Errorf("in an imposter: %v", err)
	}
}

// Totals wait for requests that have been answered, but are not counted yet.
func TestTotalsWaitForRequestsUnderWay(t *testing.T) {
	registry := runs.NewRegistry()
	id, _ := registry.Begin(false)
	run, _ := registry.Find(id)
	ended := run.Begin()
	go ended(&proxy.Record{Status: http.StatusBadGateway})
	text, err := run.Totals()
	var totals runs.Totals
	if err != nil || json.Unmarshal(text, &totals) != nil || totals.Failed != 1 {
		t.Errorf("totals are %s, %v", text, err)
	}
}
