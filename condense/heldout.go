package condense

// KeptHeldOut: the session is left alone, to compare with.
const KeptHeldOut Kept = "held_out"

// HeldOut is a condenser for the sessions that others are compared with: it does only what the window forces, or what was asked for from
// outside.
type HeldOut struct{ Condenser }

var _ Condenser = HeldOut{}

// Condense implements Condenser.
func (h HeldOut) Condense(in Input) Decision {
	d := h.Condenser.Condense(in)
	switch {
	case in.Need.Reason != "", d.Job != nil && d.Job.Need().Hard:
		return d
	case d.Job != nil:
		return Decision{Kept: KeptHeldOut}
	}
	return Decision{Kept: d.Kept}
}
