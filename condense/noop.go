package condense

// Noop leaves every view as it is.
type Noop struct{}

var _ Condenser = Noop{}

// Name implements Condenser.
func (Noop) Name() string { return "noop" }

// Condense implements Condenser.
func (Noop) Condense(Input) Decision { return Decision{} }
