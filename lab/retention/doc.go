// Package retention measures what condensers keep. It replays recorded runs moment by moment, condenses the history before
// each action to an equal budget of tokens, and looks which of the references that the action uses (paths, URLs,
// identifiers, numbers, error names, quoted literals) are still to be seen. It measures the retention of references, never
// whether a task succeeds.
package retention
