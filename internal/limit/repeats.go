package limit

// Repeats says what is done about a model that makes the same call with the same result again and again. The zero value: nothing.
type Repeats struct {
	After int    `yaml:"after" json:"after"` // so many times; 0: DefaultRepeats
	Then  string `yaml:"then" json:"then"`   // Report or Tell; empty: nothing
}

// The values of Repeats.Then.
const (
	Report = "report" // in metrics and the log
	Tell   = "tell"   // the model, too
)

// Bounds of Repeats.After, and what it is where it is 0.
const (
	MinRepeats     = 2
	DefaultRepeats = 5
	MaxRepeats     = 20 // calls that are looked back at
)
